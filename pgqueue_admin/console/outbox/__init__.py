"""Outboxes: is anything stuck between commit and send?"""

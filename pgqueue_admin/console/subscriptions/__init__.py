"""subscriptions"""

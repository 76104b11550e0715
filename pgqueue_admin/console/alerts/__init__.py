"""Warnings: open and resolved, mailed to whom, acknowledged by whom."""

"""Schedules of the lease queue: what is sent when, and whether it was."""

"""Processes of all hosts: whether they live, what they have in flight, and their logs."""

"""Processes of all hosts: whether they live, what they have in hand, and their logs."""

"""Processes of all hosts: whether they are alive, what they have in flight, and their logs."""

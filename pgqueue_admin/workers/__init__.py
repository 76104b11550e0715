"""Supervisor, managed processes, heartbeats, and the run of one child. Importing the room starts nothing."""

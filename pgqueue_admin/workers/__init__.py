"""Supervisor, managed processes, heartbeats, and trials. Importing the room starts nothing."""

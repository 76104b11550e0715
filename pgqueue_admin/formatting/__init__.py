"""Formats figures, durations, times and names: pure functions for pages, command line, mail and log."""

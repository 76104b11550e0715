"""Sending: from an object to a row in a destination's queue."""

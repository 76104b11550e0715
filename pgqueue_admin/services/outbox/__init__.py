"""Outboxes: sending by hand, switches of foreign ones, first-seen times, contents of records."""

"""Outboxes: sent by hand, switches of foreign ones, since when records wait, what they hold."""

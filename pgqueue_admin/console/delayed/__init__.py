"""Delayed tables: how many messages they hold, how many are overdue, and whether anything moves them."""

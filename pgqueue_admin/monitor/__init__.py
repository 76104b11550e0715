"""Queues from outside: find, measure, judge and read them without locking any row. Needs no Django."""

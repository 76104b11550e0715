"""Delayed tables: how much they keep back, what is overdue, and whether somebody moves it."""

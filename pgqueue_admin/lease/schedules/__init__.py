"""Scheduled messages: a cron expression with a time zone, or a date. Needs no Django."""

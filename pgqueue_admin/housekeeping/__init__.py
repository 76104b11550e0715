"""Celery tasks, each one call downwards; what they work on is rows in PostgreSQL, never what a message says."""

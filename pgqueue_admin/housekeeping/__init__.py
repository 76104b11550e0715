"""Celery tasks, each one call downwards. They work on rows in PostgreSQL, never on the content of a task message."""

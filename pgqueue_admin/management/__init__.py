"""Manage.py commands, a file each, each one call downwards."""

"""Recoverability of failed messages: immediate retries, delayed retries, dead-lettering."""

"""Starts and keeps PostgreSQL and Valkey binaries, for ``make run`` and the tests."""

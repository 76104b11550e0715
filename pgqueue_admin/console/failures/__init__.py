"""Failures: dead messages grouped by cause, with the state and owner of each group."""

"""Spark's jobs, from read to commit."""

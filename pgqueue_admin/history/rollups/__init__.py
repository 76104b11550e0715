"""Rollups: how they are stored, finalized, folded and deleted, and how Trends reads them. Without Spark."""

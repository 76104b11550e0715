"""The audit: who did what, where from, and what it changed."""

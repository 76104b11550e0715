"""Retry, discard, restore: one message or thousands, frozen, looked at, run in chunks, resumable (C4)."""

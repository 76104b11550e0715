"""Which parts of messages are hidden, from whom, and who sees them for a while."""

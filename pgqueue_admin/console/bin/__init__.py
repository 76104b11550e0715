"""What was discarded and can still be restored."""

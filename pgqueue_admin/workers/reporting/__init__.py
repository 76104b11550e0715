"""What a process says of itself: heartbeat, figures, and the messages that it has in flight."""

"""What a process reports: heartbeat, figures, and its messages in flight."""

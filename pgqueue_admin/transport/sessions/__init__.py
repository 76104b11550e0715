"""Database sessions: opened on demand, reopened after a loss; circuit breaker; NOTIFY."""

"""The lease queue: its messages, who listens, how they ended, and what is done with them by hand."""

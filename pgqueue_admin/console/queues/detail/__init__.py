"""The page of one queue: its figures, its charts, its head and tail, its consumers."""

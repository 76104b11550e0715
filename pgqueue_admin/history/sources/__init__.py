"""What history is read from: which tables, whether the server is the same, and how rows are selected there."""

"""Sources of history: which tables, whether the server is the same, and how rows are selected."""

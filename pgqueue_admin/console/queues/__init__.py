"""The list of all queues: its columns, its filter, its groups."""

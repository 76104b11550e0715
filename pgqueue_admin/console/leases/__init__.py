"""The lease queue: its messages, its listeners, how messages ended, and actions on them by hand."""

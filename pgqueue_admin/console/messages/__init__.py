"""Messages of one queue: the list, acts on waiting messages, and each message's page."""

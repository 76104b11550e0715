"""Messages of one queue: the list, what is done with those that wait, and each message's page."""

"""Which queues the people of a group see, and which pages support that."""

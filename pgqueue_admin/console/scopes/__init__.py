"""Which queues the people of a group see, and which pages know of it."""

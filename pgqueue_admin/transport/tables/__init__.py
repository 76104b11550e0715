"""Tables of the engine: queues and the routing of events, and what such a table must have."""

"""Tables of the engine in terms of messages: queues and subscriptions."""

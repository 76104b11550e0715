"""The finder: one box that knows ids, queues, endpoints and failures."""

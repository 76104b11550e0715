"""Handling of a received message: deserialize, call handlers, audit."""

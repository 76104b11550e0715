"""Delayed messages: the delayed table, the mover of due messages, forwarding to the destination."""

"""Trials of dead messages: the handlers run in a process of their own, and nothing of it is committed."""

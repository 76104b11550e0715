"""Trials of dead messages: handlers run in a process of their own, and nothing is committed."""

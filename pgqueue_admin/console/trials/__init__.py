"""Trials of dead messages: starting one, and its outcomes."""

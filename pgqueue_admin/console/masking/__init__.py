"""Masking rules: which parts of messages are hidden, from whom, and who reveals them for a while."""

"""A message made ready for its page: what it is, what happened to it, what it says."""

"""A message prepared for its page: its summary, timeline, body, error and acts."""

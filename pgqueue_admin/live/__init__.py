"""Live figures: one LISTEN a process, one stream a page, one rendering a topic (the only async room)."""

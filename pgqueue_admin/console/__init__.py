"""Pages people look at, a file per page."""

"""Pages that people look at, a folder per noun; what all share lies at the top."""

"""The archive: dead and finished messages with one search syntax, facets, measures and export."""

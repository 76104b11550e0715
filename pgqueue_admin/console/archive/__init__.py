"""The archive: dead and finished messages by one grammar, with facets, measures and export."""

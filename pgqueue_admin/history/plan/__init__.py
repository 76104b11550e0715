"""Plans the next work exactly: each row once, whatever a server does meanwhile; and days to recompute."""

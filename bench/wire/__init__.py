"""``make wire-dump``: what the engine writes to its tables, as a dump on which real endpoints can be started."""

"""``make wire-dump``: what the engine leaves in its tables, as a dump that real endpoints can be started on."""

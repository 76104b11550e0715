"""An application whose endpoint uses the lease queue."""

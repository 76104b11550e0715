"""An application whose endpoint works on the lease queue."""

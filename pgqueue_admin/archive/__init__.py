"""The archive of dead and finished messages, and the lease queue's tables: store, ingester, retry. No Django."""

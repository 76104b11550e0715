"""SQL Server: queues with delayed messages and subscriptions, crossings, and an outbox."""

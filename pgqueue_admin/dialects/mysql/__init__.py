"""MySQL and MariaDB: an outbox, and nothing else."""

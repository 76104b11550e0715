"""MySQL and MariaDB: only an outbox."""

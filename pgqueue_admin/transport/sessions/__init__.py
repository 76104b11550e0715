"""Sessions with the database: opened when needed and again when lost, waited for, woken by NOTIFY."""

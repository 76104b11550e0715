"""What a queue looks like from outside: found, measured, judged and read without a lock on any row. Knows no Django."""

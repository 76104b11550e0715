"""From an object to a row in somebody's queue."""

"""What people do: each act with its right, its guard, its audit entry and its result."""

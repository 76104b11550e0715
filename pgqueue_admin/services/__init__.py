"""Acts of people: each with its right, guard, audit entry and result."""

"""Oracle: names, and statements as text."""

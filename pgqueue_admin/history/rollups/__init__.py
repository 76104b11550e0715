"""What was counted: how it is kept, cut, folded and forgotten, and how Trends reads it. Without Spark."""

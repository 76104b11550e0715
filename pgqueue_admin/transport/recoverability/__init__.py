"""What becomes of a message that failed: tried again at once, tried again later, put away."""

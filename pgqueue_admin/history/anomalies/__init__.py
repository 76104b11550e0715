"""What figures say: which hours were unusual, and whether messages are received before they expire."""

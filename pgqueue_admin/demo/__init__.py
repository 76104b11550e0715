"""The small shop that keeps real traffic going, and the recorded one beside it."""

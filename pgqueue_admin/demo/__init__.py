"""The demo: a small shop that keeps real traffic going, and a recorded one beside it."""

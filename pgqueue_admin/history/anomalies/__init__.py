"""Judgements on figures: which hours were unusual, and whether messages are received before they expire."""

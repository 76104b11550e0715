"""Combines what all sources know of a conversation into one timeline: pure, in linear time."""

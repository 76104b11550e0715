"""Trials of dead messages: asked for, and what came of each."""

"""Endpoints: their processes, their settings, and the actions on them."""

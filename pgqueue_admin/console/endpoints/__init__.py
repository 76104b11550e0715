"""Endpoints: who works, with which settings, and what people do with them."""

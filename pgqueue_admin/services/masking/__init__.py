"""Masking: rules that hide parts of messages, and how each finds its part."""

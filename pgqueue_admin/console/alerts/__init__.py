"""Warnings: what is wrong now and what was, who was mailed, and who acknowledged it."""

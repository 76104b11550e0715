"""Starts, replaces and ends processes as the database demands, and records how they ended."""

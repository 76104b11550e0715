"""Starts, replaces and ends processes as the database says, and writes down what became of them."""

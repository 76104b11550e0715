"""Importing the package loads and starts nothing; the wheel takes its version from here."""

__version__ = "0.1.0"

"""An application that has a use of its own for a signal."""

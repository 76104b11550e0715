"""An application that asks, in a format of its own."""

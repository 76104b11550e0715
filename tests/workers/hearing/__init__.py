"""An application that uses a signal itself."""

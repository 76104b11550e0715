"""An application that sends requests in its own format."""

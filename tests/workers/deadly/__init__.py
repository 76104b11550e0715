"""An application whose handlers end their process, each in its own way."""

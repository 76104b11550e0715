"""An application whose handlers end their process in different ways."""

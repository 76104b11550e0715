"""An application with handlers, for processes that tests start."""

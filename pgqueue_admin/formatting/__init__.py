"""How a figure, a duration, a time and a name are said: pure functions for pages, command line, mail and log."""

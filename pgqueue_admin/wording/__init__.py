"""How a figure, a duration, a time and a name are said: pure functions for pages, API, mail and log."""

"""Views: addresses of lists that somebody gave a name."""

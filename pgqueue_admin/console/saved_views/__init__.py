"""Views: addresses of lists that a person saved under a name."""

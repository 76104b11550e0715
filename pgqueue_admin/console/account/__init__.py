"""A person's own pages: signing in, preferences, what their rights allow."""

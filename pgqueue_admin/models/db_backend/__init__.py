"""Django's PostgreSQL backend with the source's session rules: see ``base``, a module name that Django requires."""

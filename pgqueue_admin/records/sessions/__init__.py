"""Django's PostgreSQL, with sessions that are kept as those of the source are: see ``base``, a name Django asks for."""

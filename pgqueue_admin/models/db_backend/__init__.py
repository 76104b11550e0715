"""Django's PostgreSQL, with sessions as those of the source are: see ``base``, a name Django asks for."""

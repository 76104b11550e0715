"""The finder of every page: a message by any id that a person has copied, else a search of the archive."""

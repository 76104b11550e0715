"""Limits names in rollups to what an index can hold. Pure."""

BYTES, CHARACTERS = 800, 200  # three names are one row of an index, which has 2,704 bytes at most


def counted(name: str) -> str:
    """A name as figures have it: its beginning, where it has more than BYTES (UTF-8). Cut between two characters."""
    return name[:CHARACTERS] if len(name.encode(errors="replace")) > BYTES else name


def may_be_cut(name: str) -> bool:
    """Whether a name of figures may stand for longer ones that begin with it."""
    return len(name) == CHARACTERS

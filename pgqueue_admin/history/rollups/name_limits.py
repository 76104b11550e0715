"""Limits names in rollups to what an index can hold. Pure."""

BYTES, CHARACTERS = 800, 200  # an index row holds three names and at most 2,704 bytes


def counted(name: str) -> str:
    """The name in figures: its beginning if it exceeds BYTES (UTF-8), cut between two characters."""
    return name[:CHARACTERS] if len(name.encode(errors="replace")) > BYTES else name


def may_be_cut(name: str) -> bool:
    """Whether a name in figures may stand for several longer names."""
    return len(name) == CHARACTERS

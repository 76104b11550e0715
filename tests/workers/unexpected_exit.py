"""An unexpected end of a process."""


class Unasked:
    """Without a process's own signal handlers."""

    asked = False

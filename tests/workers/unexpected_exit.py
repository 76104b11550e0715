"""An ending that nobody has asked for."""


class Unasked:
    """Without the signal handlers of a process's own."""

    asked = False

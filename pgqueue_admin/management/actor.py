"""Who runs a command."""

import getpass
import os


def caller() -> str:
    """The account's name; its number where it has none, as in a container that runs under a number of its own."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # which of them depends on Python's version
        return f"uid {os.getuid()}"

"""The host name and id of this process, for headers."""

import hashlib
import socket
import sys
from functools import cache


@cache
def machine() -> str:
    return socket.gethostname()


@cache
def host_id() -> str:
    """32 hex digits, constant for a program on a machine."""
    return hashlib.md5(f"{machine()}\0{sys.argv[0]}".encode(), usedforsecurity=False).hexdigest()

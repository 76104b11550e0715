"""Notifies systemd by sd_notify(3)."""

import os
import socket
from contextlib import suppress

SOCKET = "NOTIFY_SOCKET"


def notify(*states: str) -> None:
    """``READY=1``, ``STOPPING=1``, ``WATCHDOG=1``, ``STATUS=…``. Does nothing without a listener."""
    address = os.environ.get(SOCKET)
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        place = "\0" + address[1:] if address.startswith("@") else address
        sending.sendto("\n".join(states).encode(), socket.MSG_DONTWAIT, place)  # a slow manager must not block us

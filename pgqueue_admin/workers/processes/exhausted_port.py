"""Fills the engine's port for exhausted messages: the archive, in the receive transaction (L2, C4)."""

import socket

from django.conf import settings

from pgqueue_admin.archive import store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.wire.message import IncomingMessage


def archive_failed(connection: Connection, message: IncomingMessage, failure: Failure) -> None:
    """Implements transport.ports.Exhausted."""
    dead = dead_message(message, failure, postgresql(), socket.gethostname())
    store.archive_failed(connection, dead, settings.PGQUEUE["OWN_CODE"])

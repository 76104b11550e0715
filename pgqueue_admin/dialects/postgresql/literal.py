"""A statement with its values in it, for a program that has only text."""

from typing import Any

import psycopg

from pgqueue_admin.dialects.connection import Connection, Params


def literal(connection: Connection, query: Any, params: Params = None) -> str:
    """Values are quoted as the driver quotes them, for this session's server and encoding."""
    return psycopg.ClientCursor(connection.raw).mogrify(query, params)

"""All SQL, and nothing but: every other room speaks to a database through a dialect."""

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.base import Dialect, Pool
from pgqueue_admin.dialects.connection import Connection, Notification

__all__ = ["Address", "Connection", "Dialect", "Notification", "Pool", "dialect_for"]


def dialect_for(dsn: str) -> Dialect:
    """The dialect that a DSN asks for. Raises ValueError for a scheme that has none."""
    from pgqueue_admin.dialects.postgresql import postgresql

    scheme = dsn.split("://", 1)[0] if "://" in dsn else "postgresql"
    if scheme in {"postgresql", "postgres"}:
        return postgresql()
    raise ValueError(f"No dialect for {scheme}://: write postgresql://user@host/database")

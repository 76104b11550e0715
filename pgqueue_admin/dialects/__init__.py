"""All SQL, and nothing else: every other room uses a database through a dialect."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.base import Dialect, Pool
from pgqueue_admin.dialects.connection import Connection, Notification
from pgqueue_admin.dialects.errors import DriverMissing

__all__ = ["DIALECTS", "Address", "Connection", "Dialect", "Notification", "Pool", "dialect_for"]

# Factories by the scheme of a DSN; imported on first use, since a driver may not be installed.
DIALECTS = {
    "postgresql": "pgqueue_admin.dialects.postgresql:postgresql",
    "postgres": "pgqueue_admin.dialects.postgresql:postgresql",
    "mysql": "pgqueue_admin.dialects.mysql.dialect:mysql",
    "mssql": "pgqueue_admin.dialects.sqlserver.dialect:sqlserver",
}
_TEXT_ALONE = {"oracle": "the statements of its outbox are text, and there is no driver for it here"}


def dialect_for(dsn: str) -> Dialect:
    """The dialect of a DSN's scheme. Raises ValueError if the scheme has none, or its driver is missing."""
    scheme = dsn.split("://", 1)[0] if "://" in dsn else "postgresql"
    if scheme not in DIALECTS:
        why = _TEXT_ALONE.get(scheme, "write postgresql://user@host/database")
        raise ValueError(f"No dialect for {scheme}://: {why}")
    module, _, name = DIALECTS[scheme].partition(":")
    try:
        make: Callable[[], Any] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("pgqueue_admin"):
            raise
        extra = module.split(".")[2]
        raise DriverMissing(f"{error.name} is not installed: pip install 'pgqueue-admin[{extra}]'") from error
    dialect = make()
    made: Dialect = dialect.within(dsn) if dialect.multi_catalog else dialect
    return made

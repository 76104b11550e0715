"""A session that belongs to the caller: we execute in it, and never end its transaction."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pymysql

from pgqueue_admin.dialects.mysql.session import MySQLSession


class ExternalSession(MySQLSession):
    """Always in the caller's transaction: no commit follows a statement."""

    def __init__(self, raw: Any):
        super().__init__(raw)
        self.begin()

    def transaction(self) -> AbstractContextManager[Any]:
        """No savepoint: without a transaction of the caller it would vanish at once."""
        return nullcontext(self)


def external_session(raw: Any) -> ExternalSession:
    """Raises TypeError for anything but a PyMySQL connection."""
    if not isinstance(raw, pymysql.Connection):
        raise TypeError(f"a pymysql.Connection is needed to send within it, and this is {type(raw).__name__}")
    return ExternalSession(raw)

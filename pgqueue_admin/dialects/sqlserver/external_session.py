"""A session that belongs to the caller: we execute in it, and never end its transaction."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pgqueue_admin.dialects.sqlserver import driver
from pgqueue_admin.dialects.sqlserver.session import SQLServerSession
from pgqueue_admin.dialects.statements import Statements


class ExternalSession(SQLServerSession):
    """Always in the caller's transaction: no commit follows a statement."""

    def __init__(self, raw: Any, sql: Statements):
        super().__init__(raw, sql)
        self.begin()

    def transaction(self) -> AbstractContextManager[Any]:
        """No savepoint: without a transaction of the caller it would begin one."""
        return nullcontext(self)


def external_session(raw: Any, sql: Statements) -> ExternalSession:
    """Raises TypeError for anything but a connection of the driver."""
    if not driver.is_connection(raw):
        raise TypeError(f"a connection of pytds is needed to send within it, and this is {type(raw).__name__}")
    return ExternalSession(raw, sql)

"""The only use of the driver, python-tds (docs/decisions/017)."""

import logging
import socket
from typing import Any

import pytds

from pgqueue_admin.dialects import errors
from pgqueue_admin.dialects.sqlserver.connect_options import ConnectOptions
from pgqueue_admin.dialects.sqlserver.error_mapping import by_number
from pgqueue_admin.dialects.sqlserver.tds_wire import TdsWire

_log = logging.getLogger("pytds")
if _log.level == logging.NOTSET:
    _log.setLevel(logging.ERROR)  # it logs each statement, with its text

_AT_ONCE = 0.001  # else the driver would sleep and retry; the wire has its own timeout


def connect(options: ConnectOptions, *, application_name: str, read_only: bool, seconds: float) -> tuple[Any, TdsWire]:
    """An open connection and its wire; ``seconds`` for all of it. Raises DatabaseDown."""
    context = options.context()
    try:
        sock = socket.create_connection((options.host, options.port), seconds)
    except OSError as error:
        raise errors.DatabaseDown(f"{options.host}:{options.port}: {error}") from error
    wire = TdsWire(sock, context, options.host, seconds)
    try:
        raw = pytds.connect(
            dsn=options.host,
            port=options.port,
            database=options.catalog,
            user=options.user,
            password=options.password,
            appname=application_name,
            readonly=read_only,
            autocommit=True,
            sock=wire,
            login_timeout=_AT_ONCE,
            disable_connect_retry=True,
        )
    except (pytds.Error, OSError) as error:  # TimeoutError is an OSError
        wire.close()
        cause = error.__cause__ if isinstance(error, TimeoutError) and error.__cause__ else error
        raise errors.DatabaseDown(str(cause)) from None
    except BaseException:
        wire.close()
        raise
    return raw, wire


def is_connection(raw: Any) -> bool:
    return isinstance(raw, pytds.connection.BaseConnection)


def is_closed(raw: Any) -> bool:
    """Whether ``close`` was called."""
    return raw._tds_socket is None


def execute(raw: Any, query: str, params: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]], int]:
    """Execute; return columns and rows of the first result set, and the number of affected rows.

    The whole answer is read: an error may follow rows. Raises errors of ``dialects.errors``.
    """
    try:
        cursor = raw.cursor()
        cursor.execute(query, _typed(params))
        names: tuple[str, ...] = ()
        rows: list[tuple[Any, ...]] = []
        touched = -1
        while True:
            if cursor.description and not names:
                names = tuple(column[0] for column in cursor.description)
                rows = [tuple(row) for row in cursor.fetchall()]
            touched = max(touched, cursor.rowcount)
            if not cursor.nextset():
                return names, rows, touched
    except pytds.Error as error:
        raise translate(error) from error


def stop(raw: Any) -> bool:
    """Cancel a statement of whose answer nothing has arrived (MS-TDS 2.2.1.7). False: the server did not confirm."""
    try:
        raw._active_cursor.cancel()
    except (pytds.Error, errors.DatabaseError):
        return False
    return True


def _typed(params: Any) -> Any:
    """Wrap bytes: the driver would send them as text."""
    if isinstance(params, dict):
        return {name: _binary(value) for name, value in params.items()}
    return params if params is None else tuple(map(_binary, params))


def _binary(value: Any) -> Any:
    return pytds.Binary(value) if isinstance(value, bytes | bytearray | memoryview) else value


def translate(error: Any) -> errors.DatabaseError:
    if isinstance(error, pytds.InterfaceError):  # already closed, or lost
        return errors.DatabaseDown(str(error))
    number = getattr(error, "msg_no", 0)
    return by_number(number, getattr(error, "text", "") or str(error))

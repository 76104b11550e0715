"""Opens sessions and sets their initial settings, independent of the server's defaults."""

from typing import Any

import pymysql
from pymysql.constants import CLIENT

from pgqueue_admin.dialects import errors, url_parts
from pgqueue_admin.dialects.mysql import out_of_range_times
from pgqueue_admin.dialects.mysql.error_mapping import translate

PORT = 3306
_PARAMETERS = ("unix_socket", "ssl_ca", "ssl_cert", "ssl_key")


def arguments(dsn: str) -> dict[str, Any]:
    """``mysql://user:password@host:port/database?unix_socket=…&ssl_ca=…&ssl_cert=…&ssl_key=…``. Raises ValueError."""
    parts = url_parts.read(dsn, _PARAMETERS)
    more: dict[str, Any] = {**parts.more}
    if "ssl_ca" in more:  # a given CA means that the server's identity must be verified
        more |= {"ssl_verify_cert": True, "ssl_verify_identity": True}
    return {
        "host": parts.host,
        "port": parts.port or PORT,
        "user": parts.user,
        "password": parts.password.encode(),
        "database": parts.path or None,
        **more,
    }


def open_raw(
    dsn: str,
    *,
    isolation: str,
    application_name: str,
    read_only: bool,
    statement_timeout: float | None,
    connect_timeout: float,
    answer_seconds: float | None,
) -> Any:
    """Raises DatabaseDown."""
    try:
        raw = pymysql.connect(
            **arguments(dsn),
            charset="utf8mb4",
            conv=out_of_range_times.CONVERSIONS,
            autocommit=False,
            client_flag=CLIENT.FOUND_ROWS,
            connect_timeout=max(1, round(connect_timeout)),
            read_timeout=answer_seconds,
            write_timeout=answer_seconds,
            program_name=application_name,
        )
        with raw.cursor() as cursor:
            for statement in _first(raw.get_server_info(), isolation, read_only, statement_timeout):
                cursor.execute(statement)
        return raw
    except pymysql.Error as error:
        raise errors.DatabaseDown(translate(error).detail) from error
    except RuntimeError as error:  # the password requires an encrypted connection, and there is none
        raise errors.DatabaseDown(str(error)) from error


def _first(server: str, isolation: str, read_only: bool, statement_timeout: float | None) -> list[str]:
    """Initial statements. Strict mode: else a value too long would be cut, and become another message's id."""
    access = ", read only" if read_only else ""
    statements = [
        "set session time_zone = '+00:00', sql_mode = concat_ws(',', nullif(@@sql_mode, ''), 'STRICT_TRANS_TABLES')",
        f"set session transaction isolation level {isolation}{access}",
    ]
    if statement_timeout and "MariaDB" in server:
        statements.append(f"set session max_statement_time = {statement_timeout:.3f}")
    elif statement_timeout:
        statements.append(f"set session max_execution_time = {statement_timeout * 1000:.0f}")
    return statements

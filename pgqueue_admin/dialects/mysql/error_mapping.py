"""Maps the driver's errors to ours by the server's error numbers."""

import pymysql

from pgqueue_admin.dialects import errors

_BY_NUMBER: dict[int, type[errors.DatabaseError]] = {
    1020: errors.Deadlock,  # MariaDB: the row was changed since this transaction's snapshot
    1040: errors.DatabaseDown,  # too many connections
    1044: errors.NotPermitted,
    1049: errors.SchemaMissing,
    1050: errors.AlreadyExists,
    1053: errors.DatabaseDown,  # the server is shutting down
    1054: errors.TableChanged,
    1060: errors.AlreadyExists,
    1061: errors.AlreadyExists,
    1062: errors.AlreadyExists,
    1077: errors.DatabaseDown,
    1079: errors.DatabaseDown,
    1142: errors.NotPermitted,
    1143: errors.NotPermitted,
    1146: errors.TableMissing,
    1158: errors.DatabaseDown,
    1159: errors.DatabaseDown,
    1160: errors.DatabaseDown,
    1161: errors.DatabaseDown,
    1203: errors.DatabaseDown,  # too many connections of this account
    1205: errors.Locked,
    1213: errors.Deadlock,
    1227: errors.NotPermitted,
    1290: errors.ReadOnly,
    1305: errors.TransactionEndedByHandler,  # the savepoint no longer exists
    1317: errors.TimedOut,
    1370: errors.NotPermitted,
    1397: errors.NoSuchBranch,
    1614: errors.Deadlock,  # and the XA transaction was rolled back
    1792: errors.ReadOnly,
    1836: errors.ReadOnly,
    1927: errors.DatabaseDown,  # MariaDB: the session was killed
    1969: errors.TimedOut,  # MariaDB: max_statement_time
    2006: errors.DatabaseDown,
    2013: errors.DatabaseDown,
    2014: errors.DatabaseDown,
    2055: errors.DatabaseDown,
    3024: errors.TimedOut,  # MySQL: max_execution_time
    3572: errors.Locked,  # MySQL: nowait
    4031: errors.DatabaseDown,  # MySQL: idle timeout
}


def translate(error: pymysql.Error, answer_seconds: float | None = None) -> errors.DatabaseError:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    detail = f"{error.args[1]} ({number})" if number is not None and len(error.args) > 1 else str(error)
    if isinstance(error.__context__, TimeoutError) and answer_seconds:
        return errors.NoAnswer(detail, seconds=answer_seconds)
    if isinstance(error, pymysql.InterfaceError):  # the session was already closed
        return errors.DatabaseDown(detail)
    kind = _BY_NUMBER.get(number or 0, errors.DatabaseError)
    return kind(detail, "40001" if kind is errors.Deadlock else None)

"""Maps the server's errors to ours by their numbers."""

from pgqueue_admin.dialects import errors

ENDED_WITHIN = 51000  # thrown by our own commit (session.sql)

_BY_NUMBER: dict[int, type[errors.DatabaseError]] = {
    207: errors.TableChanged,  # no such column
    208: errors.TableMissing,
    229: errors.NotPermitted,
    230: errors.NotPermitted,
    262: errors.NotPermitted,
    297: errors.NotPermitted,
    300: errors.NotPermitted,
    515: errors.TableChanged,  # no value for a column without default
    596: errors.DatabaseDown,  # the session was killed
    628: errors.TransactionEndedByHandler,  # no transaction for a savepoint
    911: errors.SchemaMissing,  # no such database
    916: errors.NotPermitted,
    922: errors.DatabaseDown,  # in recovery
    927: errors.DatabaseDown,  # being restored
    942: errors.DatabaseDown,  # offline
    945: errors.DatabaseDown,
    952: errors.DatabaseDown,  # in transition
    976: errors.DatabaseDown,  # a replica that accepts no connections, as after a failover
    978: errors.DatabaseDown,  # a replica that accepts only read-intent connections
    983: errors.DatabaseDown,  # a replica whose role is not resolved yet
    1088: errors.TableMissing,
    1205: errors.Deadlock,
    1222: errors.Locked,
    1913: errors.AlreadyExists,
    2601: errors.AlreadyExists,
    2627: errors.AlreadyExists,
    2705: errors.AlreadyExists,  # a column
    2714: errors.AlreadyExists,
    2760: errors.SchemaMissing,
    3701: errors.TableMissing,
    3903: errors.TransactionEndedByHandler,
    3906: errors.ReadOnly,
    3952: errors.SnapshotNotAllowed,
    3960: errors.Deadlock,  # snapshot: another transaction has changed the row
    4060: errors.DatabaseDown,  # no such database, at the login
    4221: errors.DatabaseDown,  # a replica that waits for transactions older than its start
    4902: errors.TableMissing,
    6005: errors.DatabaseDown,  # shutting down
    6401: errors.TransactionEndedByHandler,  # the savepoint no longer exists
    10928: errors.DatabaseDown,  # Azure: request limit reached
    10929: errors.DatabaseDown,
    15247: errors.NotPermitted,
    18456: errors.DatabaseDown,  # the login failed
    40197: errors.DatabaseDown,
    40501: errors.DatabaseDown,
    40613: errors.DatabaseDown,
    49918: errors.DatabaseDown,  # Azure: not enough resources for now
    49919: errors.DatabaseDown,
    49920: errors.DatabaseDown,
    ENDED_WITHIN: errors.TransactionEndedByHandler,
}


def by_number(number: int, said: str) -> errors.DatabaseError:
    """``said``: the server's message. 40001 is the SQLSTATE of other databases for a retryable transaction."""
    kind = _BY_NUMBER.get(number, errors.DatabaseError)
    detail = f"{said} ({number})" if number else said
    return kind(detail, "40001" if kind is errors.Deadlock else None)

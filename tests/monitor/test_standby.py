"""Queues on a standby: it has the rows, but does not know which are in flight."""

from collections.abc import Callable

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.monitor import depth
from tests.history.standby import following, there
from tests.monitor.tables import made, take
from tests.waiting import until


def test_in_flight_count_is_unknown_on_a_standby(
    server: PostgreSQL, connection: Connection, database: str, connect: Callable[..., Connection]
) -> None:
    table, receiver = made(connection, 5), connect(database)
    with following(server) as follower:
        looking = connect(there(follower, database))
        with receiver.transaction():
            take(receiver, table, 3)
            behind = {"at": connection.value("select pg_current_wal_flush_lsn()")}
            until(lambda: looking.value("select pg_last_wal_replay_lsn() >= %(at)s::pg_lsn", behind), what="it follows")
            seen = depth.measure(looking, table)
        looking.close()
    assert (seen.depth, seen.ready, seen.in_flight, seen.how) == (5, 5, None, "counted")

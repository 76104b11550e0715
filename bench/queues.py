"""Two hundred queues, one of them deep, and a snapshot that keeps its dead rows from vacuum."""

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.tables.table_queue import TableQueue

DEEP = Address("public", "Deep")
_FILL = """
insert into {table} (id, headers, body)
select gen_random_uuid(), '{{"NServiceBus.MessageId":"m-' || n || '","NServiceBus.EnclosedMessageTypes":'
  || '"Shop.PlaceOrder, Shop",'
  || '"NServiceBus.ContentType":"application\\/json","NServiceBus.TimeSent":"2026-11-20 12:00:00:000000 Z"}}',
  convert_to('{{"OrderId":' || n || ',"Note":"' || repeat('x', 150) || '"}}', 'UTF8')
from generate_series(1, %(rows)s) n
"""
_EAT = "delete from {table} where seq <= (select min(seq) from {table}) + %(rows)s - 1"


def lay_out(connection: Connection, queues: int, deep_rows: int) -> None:
    dialect = postgresql()
    for number in range(queues - 1):
        table = Address("public", f"Service{number:03}.Input")
        TableQueue(dialect, table).create(connection)
        connection.run(_composed(_FILL, table), {"rows": 20 + number % 50})
    TableQueue(dialect, DEEP).create(connection)
    connection.run(_composed(_FILL, DEEP), {"rows": deep_rows})
    connection.run("vacuum analyze")


def hold_snapshot(dsn: str) -> Connection:
    """A session whose old snapshot keeps vacuum from removing rows that die from now on."""
    holder = postgresql().connect(dsn, for_handlers=True)
    holder.run("begin isolation level repeatable read")
    holder.value("select count(*) from pg_class")
    return holder


def eat_head(connection: Connection, rows: int) -> None:
    """Delete the first ``rows`` rows of the deep queue, as receivers would."""
    connection.run(_composed(_EAT, DEEP), {"rows": rows})


def _composed(text: str, table: Address) -> object:
    from pgqueue_admin.dialects.postgresql.dialect import compose

    return compose(text, {"table": table})

"""The queues that engine benchmarks use, in a separate database: emptied, and filled with messages for a handler."""

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.tables.table_queue import TableQueue

_QUEUES = ("Engine", "Floor", "Onward", "error")
_FILL = """
insert into {table} (id, headers, body)
select gen_random_uuid(), '{{"NServiceBus.MessageId":"m-' || n || '","NServiceBus.EnclosedMessageTypes":"Shop.Ping",'
  || '"NServiceBus.ContentType":"application\\/json"}}', convert_to('{{"n":' || n || '}}', 'UTF8')
from generate_series(1, {rows}) n
"""


class Queues:
    def __init__(self, server: PostgreSQL):
        with postgresql().connect(server.dsn(), for_handlers=True) as admin:
            admin.run("create database bench")
        self.dsn = server.dsn("bench")
        self.connection: Connection = postgresql().connect(self.dsn, for_handlers=True)
        for queue in _QUEUES:
            TableQueue(postgresql(), Address("public", queue)).create(self.connection)
        Endpoint("Engine", self.dsn).create_queues()

    def empty(self) -> None:
        for queue in _QUEUES:
            self.connection.run(f'truncate "{queue}" restart identity')

    def fill(self, queue: str, rows: int) -> None:
        self.connection.run(_FILL.format(table=f'"{queue}"', rows=rows))
        self.connection.run(f'vacuum analyze "{queue}"')

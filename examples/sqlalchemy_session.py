"""SQLAlchemy's session in the transaction of a message: python examples/sqlalchemy_session.py postgresql://user@host/database"""

import sys
import threading
from contextlib import contextmanager

from psycopg.rows import tuple_row
from sqlalchemy import NullPool, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers


class SharedSession:
    """The session of a message, as SQLAlchemy sees it. Commit, rollback and close are the endpoint's."""

    def __init__(self, raw):
        self._raw = raw

    def __getattr__(self, name):
        return getattr(self._raw, name)

    def cursor(self, *args, **options):
        return self._raw.cursor(*args, row_factory=tuple_row, **options)

    def commit(self): ...
    def rollback(self): ...
    def close(self): ...
    def add_notice_handler(self, handler): ...  # else one more with each message


here = threading.local()
engine = create_engine(
    "postgresql+psycopg://", creator=lambda: SharedSession(here.raw), poolclass=NullPool, use_native_hstore=False
)


@contextmanager
def session_of(context):
    """What is left without an error is committed with the message and its sends; what raises is rolled back."""
    here.raw = context.connection.raw
    with engine.begin() as connection, Session(connection, join_transaction_mode="create_savepoint") as session:
        yield session
        session.commit()  # releases a savepoint


class Base(DeclarativeBase): ...


class Charge(Base):
    __tablename__ = "charges"
    id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int]


handlers = Handlers()


@handlers.handle("Shop.ChargeCard")
def charge(number, context):
    with session_of(context) as session:
        session.add(Charge(number=number))
    context.send("Sales", number, type="Shop.CardCharged")


if __name__ == "__main__":
    outbox = EndpointSettings(transaction_mode="receive_only", outbox=Outbox())
    endpoint = Endpoint("Billing", sys.argv[1], handlers=handlers, settings=outbox)
    endpoint.create_queues()
    with endpoint.connect() as connection:
        connection.run("create table if not exists charges (id serial primary key, number int unique)")
    endpoint.send("Billing", 42, type="Shop.ChargeCard")
    endpoint.run()

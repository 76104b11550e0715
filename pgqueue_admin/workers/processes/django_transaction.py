"""Sends within Django's ``transaction.atomic``; the engine itself knows no Django."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.sending.send_api import SendApi


def within_atomic(endpoint: Endpoint, using: str = DEFAULT_DB_ALIAS) -> SendApi:
    """What is sent is committed and rolled back with what Django's models write through this alias.

    with transaction.atomic():
        order.save()
        within_atomic(web).send("Sales", {"order": order.pk}, type="Shop.PlaceOrder")

    ``using`` must lead to the database that has the queues, and may write. Outside of ``atomic`` Django commits each
    statement, and so each send. Ask anew in each block: Django may have another session by then.
    Raises TransactionManagementError where the block can only be rolled back.
    """
    connection = connections[using]
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    return endpoint.within(connection.connection)


@contextmanager
def transactional_session(endpoint: Endpoint, using: str = DEFAULT_DB_ALIAS) -> Iterator[SendApi]:
    """As ``within_atomic``, where models live in another database than the queues: the endpoint's outbox lies there.

    with transaction.atomic(), transactional_session(web) as session:
        order.save()
        session.send("Sales", {"order": order.pk}, type="Shop.PlaceOrder")

    Sent after the commit: at once, or by the relay of a process that receives for this endpoint. Raises SettingsRefused
    without an outbox, and TransactionManagementError outside of ``atomic``, or where it can only be rolled back.
    """
    connection = connections[using]
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("transactional_session() is for a block of transaction.atomic()")
    connection.validate_no_broken_transaction()
    with endpoint.transactional_session(connection.connection) as session:
        yield session
    transaction.on_commit(session.dispatch, using=using, robust=True)

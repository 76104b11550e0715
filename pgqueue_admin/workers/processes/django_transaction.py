"""Sends within Django's ``transaction.atomic``; the engine itself knows no Django."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.sending.send_api import SendApi


def within_atomic(endpoint: Endpoint, using: str = DEFAULT_DB_ALIAS) -> SendApi:
    """Sends commit and roll back together with what Django's models write through this alias.

    with transaction.atomic():
        order.save()
        within_atomic(web).send("Sales", {"order": order.pk}, type="Shop.PlaceOrder")

    ``using`` must be the database of the queues, writable. Outside ``atomic``, Django commits each statement, and so
    each send. Call it again in each block: Django may use another session by then.
    Raises TransactionManagementError if the block can only be rolled back.
    """
    connection = connections[using]
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    return endpoint.within(connection.connection)


@contextmanager
def transactional_session(endpoint: Endpoint, using: str = DEFAULT_DB_ALIAS) -> Iterator[SendApi]:
    """As ``within_atomic``, for models in another database than the queues: the endpoint's outbox is in the models'.

    with transaction.atomic(), transactional_session(web) as session:
        order.save()
        session.send("Sales", {"order": order.pk}, type="Shop.PlaceOrder")

    Sends after the commit: at once, or by the relay of a process that receives for this endpoint. Raises
    SettingsRefused without an outbox, and TransactionManagementError outside ``atomic``, or if the block can only be
    rolled back.
    """
    connection = connections[using]
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("transactional_session() is for a block of transaction.atomic()")
    connection.validate_no_broken_transaction()
    with endpoint.transactional_session(connection.connection) as session:
        yield session
    transaction.on_commit(session.dispatch, using=using, robust=True)

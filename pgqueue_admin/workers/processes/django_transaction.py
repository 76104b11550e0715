"""Sending as part of Django's ``transaction.atomic``; the engine itself knows no Django."""

from django.db import DEFAULT_DB_ALIAS, connections

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

"""Writes down what an operation did to each message, in the transaction that did it."""

from pgqueue_admin.archive import schema_columns
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql


def record(connection: Connection, whose: dict[str, int], outcomes: list[Outcome]) -> None:
    columns = {
        "ids": [each.archive_id for each in outcomes],
        "outcomes": [each.result for each in outcomes],
        "whys": [each.why for each in outcomes],
        "whos": [each.who_before for each in outcomes],
        "whens": [each.when_before and each.when_before.isoformat() for each in outcomes],
        "targets": [each.target for each in outcomes],
    }
    connection.run(postgresql().operation.record(), {**whose, **columns})


def record_sent(connection: Connection, whose: dict[str, int], outcomes: list[Outcome]) -> None:
    """As which row each was put into its queue: to see what becomes of it, and to call it back."""
    sent = [each for each in outcomes if each.sent_as]
    if sent and schema_columns.has(connection, "sent_as", "operation_item"):
        columns = {"ids": [each.archive_id for each in sent], "sent_as": [each.sent_as for each in sent]}
        connection.run(postgresql().operation.record_sent(), {**whose, **columns})

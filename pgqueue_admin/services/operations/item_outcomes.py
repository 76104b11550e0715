"""Records the outcome of each message, in the transaction that acted on it."""

from pgqueue_admin.archive import schema_columns
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql


def record(connection: Connection, whose: dict[str, int], outcomes: list[Outcome]) -> None:
    """Record outcomes; of a retry also the id of each row sent, to follow it and to call it back.

    It should be the last statement of its transaction, or nearly: it disables full scans in plans after it.
    """
    sql = postgresql().operation
    has_sent = schema_columns.has(connection, "sent_as", "operation_item")
    columns = {
        "ids": [each.archive_id for each in outcomes],
        "outcomes": [each.result for each in outcomes],
        "whys": [each.why for each in outcomes],
        "whos": [each.previous_actor for each in outcomes],
        "whens": [each.previous_at and each.previous_at.isoformat() for each in outcomes],
        "targets": [each.target for each in outcomes],
        "sent_as": [each.sent_as or None for each in outcomes],
    }
    connection.all(sql.look_up_each())
    connection.run(sql.record(sent_too=sql.sent_too if has_sent else sql.nothing_sent), {**whose, **columns})

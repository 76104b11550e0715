"""Puts dead lease messages back into the lease queue, and links them with the messages they become."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pgqueue_admin.archive import schema_columns
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, Deadlock, RowsDropped
from pgqueue_admin.dialects.lease_store import QUEUE as LEASE_QUEUE
from pgqueue_admin.dialects.postgresql import postgresql

_OLDER = "The engine's tables are of a version before retries of lease messages: run manage.py engine_schema."


def put_back(connection: Connection, ids: Sequence[int]) -> dict[int, Outcome]:
    """Put all of them back in the caller's transaction, or none; if the queue refuses, all fail."""
    return _unless_second(connection, ids, lambda meant: _put(connection, meant, _sql().put_back_lease(), {}))


def put_edited(connection: Connection, documents: Mapping[int, str]) -> dict[int, Outcome]:
    """Likewise with new documents: JSON texts by archive id; numbers keep their digits."""

    def put(meant: list[int]) -> dict[int, Outcome]:
        asked = {"documents": [documents[each] for each in meant]}
        return _put(connection, meant, _sql().put_back_edited_lease(), asked)

    return _unless_second(connection, list(documents), put)


def _unless_second(
    connection: Connection, ids: Sequence[int], put: Callable[[list[int]], dict[int, Outcome]]
) -> dict[int, Outcome]:
    if not are_linked(connection):
        return _failed(ids, _OLDER)
    seconds = first_endings(connection, ids)
    meant = [each for each in ids if each not in seconds]
    refused = {each: Outcome(each, "failed", second_retry_refusal(first)) for each, first in seconds.items()}
    return refused | (put(meant) if meant else {})


def _put(connection: Connection, ids: Sequence[int], query: Any, asked: dict[str, Any]) -> dict[int, Outcome]:
    name = postgresql().canonical(LEASE_QUEUE)
    try:
        with connection.transaction():
            rows = connection.all(query, {"ids": ids, **asked})
            if len(rows) < len(ids):
                raise RowsDropped(f"It took {len(rows)} of {len(ids)}, and that was undone.")
    except (DatabaseDown, Deadlock):
        raise
    except DatabaseError as error:
        return _failed(ids, f"{name} did not take it: {error}")
    return {row.id: Outcome(row.id, "done", target=name, sent_as=str(row.retried_as)) for row in rows}


def first_endings(connection: Connection, ids: Sequence[int]) -> dict[int, int]:
    """For messages that an original client ended a second time: the archive row of the first ending."""
    if not ids or not schema_columns.has(connection, "second_ending_of"):
        return {}
    return {row.id: row.first for row in connection.all(_sql().second_endings(), {"ids": list(ids)})}


def second_retry_refusal(first: int) -> str:
    return f"An original client ended it a second time. Retry archived message {first}."


def are_linked(connection: Connection) -> bool:
    return schema_columns.has(connection, "retried_as")


def retried_as(connection: Connection, archive_id: int) -> int | None:
    """The lease message id that an archived one went back as; None if it never did, or if that was not recorded."""
    found: int | None = connection.value(_sql().retried_as(), {"id": archive_id}) if are_linked(connection) else None
    return found


def _failed(ids: Sequence[int], why: str) -> dict[int, Outcome]:
    return {each: Outcome(each, "failed", why) for each in ids}


def _sql() -> Any:
    return postgresql().archive

"""Parses the failure headers of an error queue's row. No content can keep a row out of the archive."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pgqueue_admin.archive.messages import EDIT_OF, RETRIED_FROM, DeadMessage, clean, retried_from
from pgqueue_admin.dialects import Address, Dialect
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.failure import MOST_MESSAGE, MOST_TRACE, shortened
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time

INDEXED = 400  # characters: indexed values must fit an index entry
NAME_BYTES = 63  # of a schema or table: PostgreSQL truncates longer names, so none exists


def read(headers: str, row_id: UUID | None, ingested_from: Address, dialect: Dialect) -> DeadMessage:
    """Build the dead message from its headers. If they are unreadable, the message records that.

    ``dialect``: of the database it came from; it parses addresses. The archive stores them in one canonical form.
    """
    try:
        found = h.parse(headers)
    except h.HeadersUnreadable as error:
        return _poison(f"It cannot be retried: {error}.", row_id, ingested_from)
    if h.RETRY_SUCCESSFUL in found or h.is_control_message(found):
        return _control(found, row_id, ingested_from)
    target, why = target_of(found, dialect, dialect.native(ingested_from).schema)
    where = postgresql().canonical(target or ingested_from)
    return DeadMessage(
        queue=where, target=target, retry_blocked_reason=clean(why), **_facts(found, row_id), **_failure(found)
    )


def target_of(found: h.Headers, dialect: Dialect, default_schema: str) -> tuple[Address | None, str | None]:
    """The queue to retry into, or why there is none. Whether its table exists is checked later, when needed.

    An address without a schema means the sender's default schema, assumed to be that of its error queue.
    """
    failed_queue = found.get(h.FAILED_Q)
    if not failed_queue:
        return None, "It has no NServiceBus.FailedQ header, so nobody knows which queue it came from."
    too_long = "Its NServiceBus.FailedQ is longer than the name of a table can be."
    if len(failed_queue) > INDEXED:
        return None, too_long
    try:
        target = dialect.parse_address(failed_queue, default_schema)
        names = dialect.native(target)
    except AddressUnreadable as error:
        return None, f"Its NServiceBus.FailedQ is no queue address: {error}."[:INDEXED]
    if max(len(name.encode("utf-8", "replace")) for name in names) > NAME_BYTES:
        return None, too_long
    return target, None


def _poison(why: str, row_id: UUID | None, ingested_from: Address) -> DeadMessage:
    return DeadMessage(
        queue=postgresql().canonical(ingested_from),
        retry_blocked_reason=clean(why, 1000),
        message_id=str(row_id) if row_id else None,
    )


def _control(found: h.Headers, row_id: UUID | None, ingested_from: Address) -> DeadMessage:
    """Confirmations and control messages pass through error queues but are no failures (wire sheet 8.2)."""
    why = "It is a control message between programs, not a failure."
    failed = _failure(found)
    return DeadMessage(
        kind="control",
        result="success",
        queue=postgresql().canonical(ingested_from),
        retry_blocked_reason=why,
        **_facts(found, row_id),
        **failed | {"died_at": failed["died_at"] or _time(found, h.RETRY_SUCCESSFUL)},
    )


def _facts(found: h.Headers, row_id: UUID | None) -> dict[str, Any]:
    return {
        "message_id": clean(found.get(h.MESSAGE_ID), INDEXED) or (str(row_id) if row_id else None),
        "message_type": clean(h.enclosed_type(found), INDEXED) or None,
        "endpoint": clean(found.get(h.PROCESSING_ENDPOINT), INDEXED),
        "machine": clean(found.get(h.PROCESSING_MACHINE), INDEXED),
        "retry_token": token_of(found),
        "edit_of": clean(found.get(EDIT_OF), INDEXED),
        "sent_at": _time(found, h.TIME_SENT),
    }


def token_of(found: h.Headers) -> UUID | None:
    said = retried_from(found.get(RETRIED_FROM))
    return said.token if said else None


def _failure(found: h.Headers) -> dict[str, Any]:
    trace = found.get(h.EXCEPTION_STACK_TRACE)
    return {
        "failed_queue": clean(found.get(h.FAILED_Q), INDEXED),
        "exception_type": clean(found.get(h.EXCEPTION_TYPE), INDEXED),
        "exception_message": clean(found.get(h.EXCEPTION_MESSAGE), MOST_MESSAGE),
        "stack_trace": clean(shortened(trace, MOST_TRACE)) if trace else trace,
        "died_at": _time(found, h.TIME_OF_FAILURE),
    }


def _time(found: h.Headers, name: str) -> datetime | None:
    return parse_time(found.get(name))

"""Converts what each source knows of a message to a sighting."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from pgqueue_admin.archive.conversations import ArchivedRow
from pgqueue_admin.archive.messages import EDIT_OF
from pgqueue_admin.console.conversations.places import QueueNames, message_path, queue_path, text
from pgqueue_admin.console.messages.detail.summary import address_of
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.out_of_range_times import Beyond
from pgqueue_admin.formatting.conversations.sighting import Sighting, SightingAct, SightingSource
from pgqueue_admin.formatting.numbers import format_int
from pgqueue_admin.history.storage.message_lookup import DISCARDED, FinishedMessage
from pgqueue_admin.monitor.message import DelayedMessage, StoredMessage, WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.headers import Headers, HeadersUnreadable
from pgqueue_admin.transport.wire.type_names import short_type
from pgqueue_admin.transport.wire.wire_times import parse_time

_STATES = {"dead": "dead", "retried": "retried", "succeeded": "succeeded", "dead_again": "died again"}


def of_waiting(
    table: QueueTable, kind: str, message: StoredMessage, places: QueueNames, now: datetime, zone: timedelta
) -> Sighting:
    """``kind``: the sampler's kind of the table; ``zone``: the offset of its due times."""
    about = _told(message.headers, message.type)
    about |= {
        "message_id": message.message_id,
        "link": message_path(table, message),
        "where": text(table.address.table),
    }
    about |= {"queue_link": queue_path(table.address)}
    if isinstance(message, DelayedMessage):
        return _delayed(table, message, places, now, zone, about)
    if kind == TableKind.AUDIT or _is_audited(message.headers):
        state = "handled" if _is_audited(message.headers) else "not known"
        place = text(message.headers.get(wire.PROCESSING_ENDPOINT))
        return Sighting(SightingSource.AUDIT, place=place, state=state, **about, **_handled(message.headers))
    if kind == TableKind.ERROR or message.headers.get(wire.FAILED_Q):
        return _failed(message, places, about)
    assert isinstance(message, WaitingMessage)
    about["attempts"] = message.delayed_retries or None
    return Sighting(SightingSource.QUEUE, place=places.of(table.address), state=message.state, at=now, **about)


def _delayed(
    table: QueueTable,
    message: DelayedMessage,
    places: QueueNames,
    now: datetime,
    zone: timedelta,
    about: dict[str, Any],
) -> Sighting:
    due = message.due_at - zone if message.due_at else None
    goes_to = places.named(message.destination) if message.destination else ""
    place = goes_to or (places.of(table.delayed_of) if table.delayed_of else text(table.address.table))
    state = "overdue" if due and due <= now else "delayed"
    return Sighting(
        SightingSource.DELAYED, place=place, state=state, at=due, attempts=message.delayed_retries or None, **about
    )


def _failed(message: StoredMessage, places: QueueNames, about: dict[str, Any]) -> Sighting:
    headers = message.headers
    return Sighting(
        SightingSource.ERRORS,
        place=places.named(headers.get(wire.FAILED_Q)) or text(headers.get(wire.PROCESSING_ENDPOINT)),
        state="failed",
        failed_at=parse_time(headers.get(wire.TIME_OF_FAILURE)),
        host=text(headers.get(wire.PROCESSING_MACHINE)),
        cause=_cause(headers.get(wire.EXCEPTION_TYPE)),
        **about,
    )


def of_archived(found: ArchivedRow, places: QueueNames, reasons: Mapping[int, str]) -> Sighting:
    """``reasons``: what people wrote, by the number of the operation."""
    row, died = found.row, instant(found.row.died_at)
    never_ended = row.state == "discarded" and row.resolved_at == row.died_at  # taken out while it waited
    succeeded = row.result == "success"
    at = instant(row.ended_at) or instant(row.resolved_at) or instant(row.died_at)
    about = _told(found.headers, row.message_type)
    about["sent_at"] = instant(row.sent_at) or about["sent_at"]
    return Sighting(
        SightingSource.ARCHIVE,
        message_id=row.message_id or f"archive {row.id}",
        place=places.named(row.queue) or text(row.endpoint),
        state=_STATES.get(row.state, str(row.state)),
        where=format_int(row.id),
        link=reverse("archived_message", args=[row.id]),
        queue_link=queue_path(address_of(row.queue)),
        at=at,
        host=text(row.machine),
        failed_at=None if succeeded or never_ended else died,
        ended_at=died if succeeded else None,
        attempts=row.attempts,
        cause=_cause(row.exception_type) or text(row.retry_blocked_reason),
        acts=tuple(_act(event, reasons) for event in found.events),
        **about,
    )


def _act(event: Any, reasons: Mapping[int, str]) -> SightingAct:
    reason = text(reasons.get(event.operation, ""))
    return SightingAct(
        instant(event.at), text(event.who), text(event.verb), event.operation, _table(event.target), reason
    )


def of_finished(message: FinishedMessage, places: QueueNames) -> Sighting:
    headers = _headers(message.headers)
    about = _told(headers, message.type)
    about["sent_at"] = message.sent_at or about["sent_at"]
    succeeded, discarded = message.result == "success", message.result == DISCARDED
    query = urlencode({"source": message.source, "at": message.ended_at.isoformat()})
    return Sighting(
        SightingSource.HISTORY,
        message_id=message.message_id or f"{message.source} {message.seq}",
        place=places.named(message.queue) or text(message.endpoint),
        state="handled" if succeeded else "discarded" if discarded else "failed before",
        link=f"{reverse('finished_message', args=[message.seq])}?{query}",
        at=message.ended_at,
        host=text(headers.get(wire.PROCESSING_MACHINE)),
        started_at=message.started_at,
        ended_at=message.ended_at if succeeded else None,
        failed_at=None if succeeded or discarded else message.ended_at,
        cause=_cause(message.exception_type),
        **about,
    )


def not_archived(history: Iterable[FinishedMessage], archived: Iterable[ArchivedRow]) -> list[FinishedMessage]:
    """The history without messages that the archive still has, which knows more of them."""
    known = {(row.message_id, at) for each in archived if (row := each.row) and (at := instant(row.died_at))}
    return [each for each in history if (each.message_id, each.ended_at) not in known]


def _told(headers: Headers, type_name: str | None) -> dict[str, Any]:
    return {
        "type": text(short_type(type_name)) if type_name else "",
        "is_event": headers.get(wire.MESSAGE_INTENT) == "Publish",
        "sender": text(headers.get(wire.ORIGINATING_ENDPOINT)),
        "sender_host": text(headers.get(wire.ORIGINATING_MACHINE)),
        "related_to": headers.get(wire.RELATED_TO) or "",
        "edit_of": headers.get(EDIT_OF) or "",
        "sent_at": parse_time(headers.get(wire.TIME_SENT)),
    }


def _is_audited(headers: Headers) -> bool:
    """Only a handled message says when its handling ended. In a failed one, that was an earlier handling."""
    return bool(headers.get(wire.PROCESSING_ENDED)) and not headers.get(wire.FAILED_Q)


def _handled(headers: Headers) -> dict[str, Any]:
    return {
        "host": text(headers.get(wire.PROCESSING_MACHINE)),
        "started_at": parse_time(headers.get(wire.PROCESSING_STARTED)),
        "ended_at": parse_time(headers.get(wire.PROCESSING_ENDED)),
    }


def _cause(exception: str | None) -> str:
    return text(short_type(exception)) if exception else ""


def _table(target: str | None) -> str:
    address: Address | None = address_of(target)
    return text(address.table) if address else text(target)


def _headers(written: str | None) -> Headers:
    try:
        return wire.parse(written)
    except HeadersUnreadable:
        return {}


def instant(at: datetime | None) -> datetime | None:
    """None for a time beyond the calendar."""
    return None if at is None or isinstance(at, Beyond) else at

"""Sends one message to a transport queue by hand, with the headers that senders on the wire set."""

import json
from typing import Any, NamedTuple

from pgqueue_admin.archive import crossings, foreign_code
from pgqueue_admin.archive.held_row import others_code
from pgqueue_admin.archive.message_edit import MOST_BYTES, is_locked
from pgqueue_admin.archive.messages import clean
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError, RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import database_of, is_watched, queue_database, write_refusal
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.services import audit_intents, sent_forms
from pgqueue_admin.services.audited_act import audited
from pgqueue_admin.services.operations import acts_allowed
from pgqueue_admin.services.operations.crossings import NotCarried, send_out
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.operations.targets import judge
from pgqueue_admin.services.permissions import name_of, refusal_for
from pgqueue_admin.transport.sessions.queue_notifications import tell_with_commit
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.header_composer import SEND, HeaderComposer
from pgqueue_admin.transport.wire.serializers import Serializers

SENDER = "pgqueue console"
JSON = "application/json"
CONTENT_TYPES = (JSON, "text/xml", "text/plain")
NOTHING = "Nothing was sent"


class TypedMessage(NamedTuple):
    """``headers``: the person's own, one ``Name: value`` a line."""

    type: str
    body: str
    content_type: str = JSON
    headers: str = ""


def send(queue: Address, typed: TypedMessage, person: Any, origin: str, reason: str = "", form: str = "") -> str:
    """Return the message id. Raises OperationRefused, or OutcomeUnknown. ``form``: makes a form send only once."""
    if refusal := refusal_for(person, "send"):
        raise OperationNotAllowed(f"{NOTHING}: {refusal}.")
    headers = composed(typed)
    after = {"message_id": headers[h.MESSAGE_ID], "type": clean(typed.type), "bytes": len(_body(typed))}
    about: dict[str, Any] = {
        "who": name_of(person),
        "verb": "send",
        "noun": "message",
        "origin": origin,
        "reason": reason,
    }
    about |= {"subject": queue_database().dialect.canonical(queue)[:400], "after": after}
    send = send_across if database_alias.alias_of(queue) else _put
    try:
        lost = send(queue, headers, _body(typed), about, form)
    except DatabaseError as error:
        raise OperationRefused(f"{NOTHING}. {error}") from error
    if lost:
        raise OutcomeUnknown(f"Whether it was sent is not known. Its id is {headers[h.MESSAGE_ID]}. {lost}")
    return str(headers[h.MESSAGE_ID])


def blocking_reason(connection: Connection, queue: Address) -> str:
    """Why nothing can be sent there by hand; empty: it can. Raises DatabaseError. ``connection``: to its database."""
    if why := write_refusal(queue):
        return why
    if not is_watched(queue):
        return f"The schema {queue.schema} is not watched here (PGQUEUE_QUEUE_SCHEMAS)."
    table = discovery.readable(connection, queue)
    if table is None:
        return f"There is no queue table {queue.table} now."
    return _unfit(table) or acts_allowed.why_foreign(table) or _refusal(connection, queue)


def _refusal(connection: Connection, queue: Address) -> str:
    if not database_alias.alias_of(queue):
        return judge(connection, [queue])[queue].refusal_by_hand()
    with queue_database().read_session() as here:
        target = judge(here, [queue])[queue]
    return target.refusal() or others_code(target.runs)


def _unfit(table: QueueTable) -> str:
    named = Queue.objects.filter(schema=table.address.schema, table=table.address.table, gone_since=None).first()
    if table.kind is TableKind.LEASE:
        return f"{table.address.table} is a lease queue: a message is published there."
    kind = TableKind(named.kind) if named else table.kind
    return "" if kind is TableKind.INPUT else f"{table.address.table} is no input queue of this format."


def composed(typed: TypedMessage) -> h.Headers:
    """Compose the headers. Raises OperationRefused if no message can be made."""
    name = typed.type.strip()
    if not name or any(not each.isprintable() for each in name):
        raise OperationRefused(f"{NOTHING}: a type is asked for, such as Shop.PlaceOrder. By it a handler is found.")
    if typed.content_type not in CONTENT_TYPES:
        raise OperationRefused(f"{NOTHING}: {typed.content_type} is none of {', '.join(CONTENT_TYPES)}.")
    _check(typed)
    composer = HeaderComposer(SENDER, None, Serializers())
    made = composer.letterhead(name, SEND, {h.CONTENT_TYPE: typed.content_type, **_own(typed.headers)}, None)
    return dict(made.headers())


def _check(typed: TypedMessage) -> None:
    body = _body(typed)
    if len(body) > MOST_BYTES:
        raise OperationRefused(f"{NOTHING}: its body has more than {MOST_BYTES:,} bytes.")
    try:
        if typed.content_type == JSON:
            json.loads(body)
    except (ValueError, RecursionError) as error:
        raise OperationRefused(
            f"{NOTHING}: its body is no JSON: {error}. Another content type takes it as text."
        ) from None


def _body(typed: TypedMessage) -> bytes:
    try:
        return typed.body.replace("\r\n", "\n").encode()
    except UnicodeEncodeError:
        raise OperationRefused(f"{NOTHING}: its body has half a character, which no text can hold.") from None


def _own(text: str) -> h.Headers:
    found: h.Headers = {}
    for line in filter(str.strip, text.splitlines()):
        name, colon, value = (each.strip() for each in line.partition(":"))
        if not colon or not name:
            raise OperationRefused(f"{NOTHING}: a header is a line such as Customer: 4711, and {line[:80]!r} is none.")
        if is_locked(name):
            raise OperationRefused(f"{NOTHING}: {name[:80]} is given by whoever sends, and cannot be typed.")
        found[name] = value
    return found


def _put(queue: Address, headers: h.Headers, body: bytes, about: dict[str, Any], form: str) -> str:
    """Insert the message; return the error if its outcome is unknown, else "". ``about``: of the audit entry."""
    lost = ""
    with audited(None, lambda intent: sent_forms.claim(form, intent, about), **about) as act:
        act.note(**sent_forms.noted(form))
        with queue_database().write_session() as connection:
            try:
                _insert(connection, queue, headers, body)
            except DatabaseDown as error:
                lost = str(error)
                act.note(outcome="not known")
        act.done = 1
    return lost


def send_across(queue: Address, headers: h.Headers, body: bytes, about: dict[str, Any], form: str) -> str:
    """Likewise into a queue of another database. Raises OperationRefused, DatabaseError: nothing was sent then."""
    with database_of(queue).read_session(queue) as there:
        why = blocking_reason(there, queue)
    if why:
        raise OperationRefused(f"{NOTHING}. {why}")
    with queue_database().write_session() as here, crossings.all_let_go(here):
        with here.transaction():
            crossing = crossings.put_typed(here, queue, h.dump(headers), body, about["who"])
        intent = audit_intents.keep(crossing, **about)
        sent_forms.claim(form, intent, about)  # before it leaves: if this raises, it never does
        try:
            if send_out(here, crossing) is not None:
                return ""
            why = crossings.how_it_stands(here, crossing, queue)
        except NotCarried:
            raise
        except DatabaseError as error:  # of a query here: it may still arrive
            why = str(error)
        audit_intents.not_known(crossing)
    return why


def _insert(connection: Connection, queue: Address, headers: h.Headers, body: bytes) -> None:
    if why := blocking_reason(connection, queue):
        raise OperationRefused(f"{NOTHING}. {why}")
    row = {"id": None, "ttbr_ms": None, "headers": h.dump(headers), "body": body}
    with connection.transaction():
        if why := foreign_code.would_run(connection, queue, foreign_code.INSERT):
            raise OperationRefused(f"{NOTHING}. {why}")
        if connection.run(postgresql().queue.send(table=queue), row) != 1:
            raise RowsDropped("It took no row, and that was undone.")
        tell_with_commit(connection, postgresql(), [queue] if acts_allowed.is_ours(queue) else [])

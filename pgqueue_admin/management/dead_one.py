"""`manage.py dead`: edits one message and retries it, also to another queue; copies one."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.edited_retry import EditedMessage
from pgqueue_admin.archive.message_copy import ArchivedOne
from pgqueue_admin.archive.message_edit import MOST_BYTES, is_locked
from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.visible_queues import LEASE_NAME
from pgqueue_admin.management import act_command
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import message_copies
from pgqueue_admin.services.edited_retry import EditChanges, retry_edited
from pgqueue_admin.services.operations.errors import OperationRefused, OutcomeUnknown
from pgqueue_admin.transport.wire.headers import HeadersUnreadable

EDIT, COPY = "edit", "copy"
NOTHING = "Nothing was sent"


def add_verbs(verbs: Any) -> None:
    edit = verbs.add_parser(EDIT, help="Sends one with another body, headers or queue in its place, with a new id.")
    copy = verbs.add_parser(COPY, help="Sends one once more with a new id; the original stays as it is.")
    for parser in (edit, copy):
        parser.add_argument("archive_id", type=int, help="Its number, as list shows it.")
        parser.add_argument("--to", metavar="QUEUE", help="A known input queue. Default: where it died.")
        act_command.named(parser)
    add_edits(edit)


def add_edits(edit: ArgumentParser) -> None:
    edit.add_argument("--body", metavar="FILE", help="Its body instead, byte for byte.")
    edit.add_argument(
        "--header",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="A header of yours. Repeatable.",
    )
    edit.add_argument("--no-header", action="append", default=[], metavar="NAME", help="Without this one. Repeatable.")


def edit(out: Any, options: dict[str, Any]) -> None:
    """Send it edited. Raises OperationRefused, OutcomeUnknown, DatabaseError."""
    message, was, body_was = _read(options["archive_id"])
    now = {**was, **dict(options["header"])}
    for name in options["no_header"]:
        now.pop(name, None)
    if locked := [name for name in (*dict(options["header"]), *options["no_header"]) if is_locked(name)]:
        raise OperationRefused(f"{NOTHING}: {locked[0]} is read by programs, and cannot be changed.")
    body = _body(options["body"])
    target = _target(options["to"], message)
    if message.kind == "lease":
        _insist_on_json(now, body)
    if now == was and body is None and target == message.target:
        raise OperationRefused(f"{NOTHING}: nothing is changed. dead retry sends it as it was.")
    if not options["reason"].strip():
        raise OperationRefused(f"{NOTHING}: give --reason.")
    changes = _changes(was, now, body_was, body)
    about = (options["who"], "command", options["reason"], changes)
    queue = message.queue or (LEASE_NAME if message.kind == "lease" else "")  # clients of the original name none
    sent = retry_edited(message.id, queue, EditedMessage(now, body), target, *about)
    if sent.is_on_its_way:
        raise OutcomeUnknown(f"Whether it was sent is not known yet. {sent.outcome.why} Its id is {sent.message_id}.")
    if sent.outcome.result != "done":
        raise OperationRefused(f"{NOTHING}. {sent.outcome.why}")
    out.write(f"1 edited message was sent to {sent.outcome.target} as {sent.message_id}.")


def copy(out: Any, options: dict[str, Any]) -> None:
    """Send a copy. Raises likewise."""
    with queue_database().read_session() as connection:
        message = store.get(connection, options["archive_id"])
    if message is None:
        raise OperationRefused(f"{NOTHING}: there is no archived message {options['archive_id']}.")
    target = _target(options["to"], message)
    sent = message_copies.copy(ArchivedOne(message.id), target, options["who"], "command", options["reason"])
    out.write(f"1 copy sent to {target.table} as {sent}. The original stays as it is.")


def _read(archive_id: int) -> tuple[ArchivedMessage, dict[str, str | None], bytes]:
    """Return the message with its own headers and the editable part of its body."""
    with queue_database().read_session() as connection:
        message = store.get(connection, archive_id)
        if message is None:
            raise OperationRefused(f"{NOTHING}: there is no archived message {archive_id}.")
        if message.kind not in ("transport", "lease"):
            raise OperationRefused(f"{NOTHING}: only messages of queues can be edited.")
        body = store.body(connection, archive_id, 0, MOST_BYTES)
    try:
        kept = dead_messages.kept_headers(message.headers)
    except HeadersUnreadable as error:
        raise OperationRefused(f"{NOTHING}: its headers cannot be read: {error}.") from None
    return message, {name: value for name, value in kept.items() if not is_locked(name)}, body.content if body else b""


def _insist_on_json(headers: dict[str, str | None], body: bytes | None) -> None:
    if headers:
        raise OperationRefused(f"{NOTHING}: a lease message has no headers.")
    try:
        if body is not None:
            json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise OperationRefused(f"{NOTHING}: the lease queue takes JSON alone, and this is none: {error}.") from None


def _body(path: str | None) -> bytes | None:
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise OperationRefused(f"{NOTHING}: its body cannot be read: {error}.") from None


def _target(text: str | None, message: ArchivedMessage) -> Address:
    target = act_command.address_of(text) if text else message.target
    if target is None:
        raise OperationRefused(f"{NOTHING}: say --to, as no queue is known to which it goes.")
    return target


def _changes(
    was: dict[str, str | None], now: dict[str, str | None], body_was: bytes, body: bytes | None
) -> EditChanges:
    names = [name for name in {**was, **now} if was.get(name) != now.get(name) or (name in was) != (name in now)]
    before, after = ({name: each[name] for name in names if name in each} for each in (was, now))
    texts = None if body is None else (body_was.decode("utf-8", "replace"), body.decode("utf-8", "replace"))
    return EditChanges(before, after, texts)

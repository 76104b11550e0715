"""A message's row in the archive's list, without a template: rendering fifty rows took most of the page's time."""

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from django.utils.safestring import SafeString

from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.console import components, url_converters
from pgqueue_admin.console.messages import payload_cells
from pgqueue_admin.console.messages.detail.archive_rows import ArchiveRow
from pgqueue_admin.console.messages.detail.summary import done_by

CAUSE = 140  # characters of the cause of death
_BY_SENT, _BY_SIZE = ("sent", "-sent"), ("size", "-size")


def rows(found: Sequence[ArchiveRow], q: str, sort: str) -> SafeString:
    """``q``: the search that a message's page returns to."""
    search = escape(quote(q, safe="/"))
    return SafeString("".join(_row(each, search, sort) for each in found))


def _row(of: ArchiveRow, search: str, sort: str) -> str:
    m = of.message
    box = f'name="id" value="{m.id}" aria-label="Select archive {m.id}"'
    after = f'<td role="cell" class="num mid drop">{components.duration(of.seconds_until_dead)}</td>'
    sent = f'<td role="cell" class="num" data-l="Sent">{components.ago(m.sent_at)}</td>' if sort in _BY_SENT else after
    drop = "" if sort in _BY_SIZE else " drop"
    size = "" if m.kind == "lease" else components.message_size(m.body_bytes)
    attempts = "–" if m.attempts is None else m.attempts
    return (
        f'<tr role="row" id="m{m.id}"><td role="cell" class="pick"><input type="checkbox" {box}></td>'
        f'<th role="rowheader" scope="row" class="name full">{_name(of, search)}</th>'
        f'<td role="cell" data-l="State">{_state(of)}</td>'
        f'<td role="cell" data-l="Queue">{components.queue_link(of.address)}</td>{payload_cells.drawn(of.cells)}'
        f'<td role="cell" class="num" data-l="Died">{components.ago(m.died_at)}</td>{sent}'
        f'<td role="cell" class="num drop">{attempts}</td>'
        f'<td role="cell" class="num mid{drop}" data-l="Size">{size}</td></tr>\n'
    )


def _name(of: ArchiveRow, search: str) -> str:
    m = of.message
    cause = components.marked(components.truncate(of.cause, CAUSE))
    return (
        f'<a href="{url_converters.archived(m.id)}?q={search}">{components.message_name(of.type)}</a> {_copy(m)}'
        f'<span class="sub wrap-any" dir="auto">{cause}</span>'
    )


def _copy(m: ArchivedMessage) -> str:
    if not m.message_id:
        return ""
    about = f'data-copy="{escape(m.message_id)}" aria-label="Copy message id"'
    return f'<button class="copy" type="button" {about}>{components.icon("copy")}</button> '


def _state(of: ArchiveRow) -> str:
    m = of.message
    said: list[str] = [components.state(of.word, m.state)]
    if m.resolved_by:
        said.append(f'<span class="sub">{escape(done_by(m))}, {components.ago(m.resolved_at)}</span>')
    if of.first_ending:
        link = f'<a href="{url_converters.archived(of.first_ending)}">archived {of.first_ending:,}</a>'
        said.append(f'<span class="sub">second ending, after {link}</span>')
    elif m.state == "dead" and m.why_no_retry:
        said.append('<span class="sub">cannot be retried</span>')
    return " ".join(said)

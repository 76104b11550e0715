"""List cells that fit on a screen: names wrap; long ones are cut, with a tooltip of the whole."""

import re
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.out_of_range_times import Beyond
from pgqueue_admin.formatting import escape_invisible, names
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport.wire.type_names import short_type

WIDEST = 28  # characters: eight columns then fit in 1,440 pixels


def fitting(text: str | None, widest: int = WIDEST) -> SafeString:
    return _cell(text or "", text or "", widest)


def table(address: str | None) -> SafeString:
    """A queue without its quotes, and without its schema if that is the default one."""
    return _cell(_table(address or ""), address or "", WIDEST)


def type_name(name: str | None) -> SafeString:
    """A type name without its namespace."""
    return _cell(short_type(name or ""), name or "", WIDEST)


def _table(address: str) -> str:
    try:
        found = queue_database().dialect.parse_address(address)
    except AddressUnreadable:
        return address
    return found.table if found.schema == queue_database().default_schema else f"{found.schema}.{found.table}"


def _cell(shown: str, whole: str, widest: int) -> SafeString:
    cut = shown if len(shown) <= widest else f"{shown[: widest - 1]}…"
    broken = format_html_join(mark_safe("<wbr>"), "{}", ((piece,) for piece in names.pieces(cut)))
    return broken if cut == whole else format_html('<span title="{}">{}</span>', whole, broken)


class Sample(NamedTuple):
    """One message of a frozen set, for the confirmation page."""

    archive_id: int
    type: SafeString
    queue: SafeString
    exception: SafeString
    died_at: datetime | Beyond | None

    @classmethod
    def of(cls, row: Any) -> "Sample":
        exception = type_name(row.exception_type)
        return cls(row.archive_id, type_name(row.message_type), table(row.queue), exception, row.died_at)


# Untrusted text in Django admin's own tables: bidirectional and invisible characters are marked.
_TEXT = re.compile(r">[^<]+")  # never attributes: a form would send the marks back


def marked(response: HttpResponse) -> HttpResponse:
    """Mark as console pages do, after rendering: the templates are Django's."""
    if isinstance(response, TemplateResponse):
        response.add_post_render_callback(_mark)
    return response


def _mark(response: Any) -> None:
    response.content = _TEXT.sub(lambda text: escape_invisible.plain(text[0]), response.content.decode())

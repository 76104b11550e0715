"""Template tags for figures, times, names and acts. Built in: no template loads them or formats a number itself."""

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django import template
from django.template.defaultfilters import stringfilter
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import components, navigation, url_converters
from pgqueue_admin.console.queue_row import cells
from pgqueue_admin.console.queue_row.rows import QueueRow
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting import durations, escape_invisible, numbers, times
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.queue_database import is_watched, queue_database
from pgqueue_admin.transport.wire.type_names import short_type

register = template.Library()

register.simple_tag(components.figure, name="figure")
register.simple_tag(components.rate, name="rate")
register.simple_tag(components.duration, name="duration")
register.simple_tag(components.ago, name="ago")
register.simple_tag(components.sent, name="sent")
register.simple_tag(components.when, name="when")
register.simple_tag(components.moment, name="moment")
register.simple_tag(components.icon, name="icon")
register.simple_tag(components.name, name="name")
register.simple_tag(components.state, name="state")
register.simple_tag(components.verdict, name="verdict")
register.simple_tag(components.key, name="key")
register.simple_tag(components.line, name="line")
register.simple_tag(components.queue_link, name="queue_link")
register.filter("short_type", short_type)
register.simple_tag(numbers.size, name="size")
register.simple_tag(numbers.pluralize, name="counted")


@register.simple_tag
def queue_path(address: Address, page: str = "queue") -> str:
    return url_converters.queue(address, page)


@register.simple_tag
def cell(row: QueueRow, name: str) -> SafeString:
    """A cell of the table of queues, exactly as the stream sends it."""
    return cells.CELLS[name](row)


@register.simple_tag
def age_since(instant: datetime | None) -> str:
    """How long ago, as a duration: ``25 min``."""
    return (
        durations.duration(float(int((database_clock.now() - instant).total_seconds()))) if instant else numbers.UNKNOWN
    )


@register.simple_tag
def page_link(name: str, text: str, q: str = "") -> SafeString:
    """A link to a page; empty if there is no such page. ``q``: its filter."""
    path = navigation.path_of(name)
    query = f"?{urlencode({'q': q})}" if q else ""
    return format_html('<a href="{}{}">{}</a>', path, query, text) if path else SafeString()


@register.simple_tag
def address_link(canonical: str) -> SafeString:
    """A link to the queue that an address in headers or warnings names, if there is a page of it."""
    try:
        address = queue_database().dialect.parse_address(canonical)
    except AddressUnreadable:
        return components.name(canonical)
    return components.queue_link(address) if is_watched(address) else components.name(canonical)


@register.filter(is_safe=True)
@stringfilter
def seen(text: str) -> str:
    """Mark invisible and bidirectional characters in text that others wrote."""
    return escape_invisible.plain(text)


@register.filter
def iso(instant: datetime | None) -> str:
    return times.iso(instant) if instant else ""


@register.filter
def capitalised(text: str) -> str:
    """The first letter capital, the rest unchanged."""
    return text[:1].upper() + text[1:]


@register.inclusion_tag("pgqueue_admin/parts/act.html", takes_context=True)
def act(
    context: template.Context,
    label: str,
    url: str,
    refusal: Any = None,
    icon: str = "",
    kind: str = "",
    ident: str = "",
    key: str = "",
    **fields: Any,
) -> dict[str, Any]:
    """A button that posts. With a ``refusal`` it is shown disabled, the reason beside it. ``ident``: its id, which
    keeps the focus when a page reloads itself. ``key``: its shortcut.

    Further names become hidden fields: ``{% act "Undo" url refusal entry=12 %}``. The present page is posted as
    ``next``, so that the answer is a 303 back to the same filter and place.
    """
    request = context.get("request")
    fields.setdefault("next", request.get_full_path() if request else navigation.path_of("overview"))
    return {
        "label": label, "url": url, "refusal": str(refusal) if refusal else "", "icon_name": icon, "kind": kind,
        "ident": ident, "key": key, "fields": fields.items(), "csrf_token": context.get("csrf_token"),
        "request": request,
    }  # fmt: skip


@register.simple_tag(takes_context=True)
def with_query(context: template.Context, **changes: Any) -> str:
    """The address's query with some names changed; a value of None or "" drops the name. Cursors are dropped."""
    query = context["request"].GET.copy()
    for name_ in ("after", "before"):
        query.pop(name_, None)
    for name_, value in changes.items():
        query.pop(name_, None)
        if value not in (None, ""):
            query[name_] = value
    return f"?{query.urlencode()}" if query else "?"

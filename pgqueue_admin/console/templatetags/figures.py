"""Template tags for figures, times, names and acts. Built in: no template loads it, no page formats a number itself."""

from datetime import datetime
from typing import Any

from django import template
from django.template.defaultfilters import stringfilter
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import navigation, parts, paths
from pgqueue_admin.console.board import cells
from pgqueue_admin.console.board.rows import Row
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import AddressNotUnderstood
from pgqueue_admin.records import clock
from pgqueue_admin.records.source import source
from pgqueue_admin.transport.wire.type_names import short_type
from pgqueue_admin.wording import durations, times, visible
from pgqueue_admin.wording import figures as said

register = template.Library()

register.simple_tag(parts.figure, name="figure")
register.simple_tag(parts.rate, name="rate")
register.simple_tag(parts.duration, name="duration")
register.simple_tag(parts.ago, name="ago")
register.simple_tag(parts.sent, name="sent")
register.simple_tag(parts.when, name="when")
register.simple_tag(parts.moment, name="moment")
register.simple_tag(parts.icon, name="icon")
register.simple_tag(parts.name, name="name")
register.simple_tag(parts.state, name="state")
register.simple_tag(parts.verdict, name="verdict")
register.simple_tag(parts.key, name="key")
register.simple_tag(parts.line, name="line")
register.filter("short_type", short_type)
register.simple_tag(said.size, name="size")
register.simple_tag(said.counted, name="counted")


@register.simple_tag
def queue_link(address: Address | None, text: str = "", page: str = "queue") -> SafeString:
    """A link to a queue's page; ``page`` names one below it, such as ``messages``."""
    if address is None:
        return parts.unknown()
    return format_html('<a href="{}">{}</a>', paths.queue(address, page), parts.name(text or address.table))


@register.simple_tag
def queue_path(address: Address, page: str = "queue") -> str:
    return paths.queue(address, page)


@register.simple_tag
def cell(row: Row, name: str) -> SafeString:
    """A cell of the table of queues, exactly as the stream sends it."""
    return cells.CELLS[name](row)


@register.simple_tag
def age_since(instant: datetime | None) -> str:
    """How long ago, as a length: ``25 min``."""
    return durations.duration(float(int((clock.now() - instant).total_seconds()))) if instant else said.UNKNOWN


@register.simple_tag
def page_link(name: str, text: str) -> SafeString:
    """A link to a page, or nothing while it does not exist."""
    path = navigation.path_of(name)
    return format_html('<a href="{}">{}</a>', path, text) if path else SafeString()


@register.simple_tag
def address_link(canonical: str) -> SafeString:
    """A link to the queue that an address in headers or warnings means, where there is a page of it."""
    try:
        address = source().dialect.parse_address(canonical)
    except AddressNotUnderstood:
        return parts.name(canonical)
    return queue_link(address) if source().allows(address) else parts.name(canonical)


@register.filter(is_safe=True)
@stringfilter
def seen(text: str) -> str:
    """Text that others wrote: characters without a shape, and those that turn text around, are marked."""
    return visible.plain(text)


@register.filter
def iso(instant: datetime | None) -> str:
    return times.iso(instant) if instant else ""


@register.filter
def capitalised(text: str) -> str:
    """The first letter large, the rest as it is."""
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
    """A button that posts. With a ``refusal`` it is shown all the same, disabled, the reason beside it. ``ident``: its
    id, by which it keeps the focus where a page asks for itself again. ``key``: what presses it.

    Further names become hidden fields: ``{% act "Undo" url refusal entry=12 %}``. The page it came from goes along as
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
    """The address's query with some names changed; a value of None or "" drops the name. Cursors never travel along."""
    query = context["request"].GET.copy()
    for name_ in ("after", "before"):
        query.pop(name_, None)
    for name_, value in changes.items():
        query.pop(name_, None)
        if value not in (None, ""):
            query[name_] = value
    return f"?{query.urlencode()}" if query else "?"

"""What an open Overview is told with each sample. Rows are a topic of their own: a page keeps those it began with."""

from django.template.loader import render_to_string

from pgqueue_admin.console import parts
from pgqueue_admin.console.board import cells
from pgqueue_admin.console.board import rows as board
from pgqueue_admin.console.numbers import several
from pgqueue_admin.console.overview import looks
from pgqueue_admin.console.overview.needs import MOST, Need
from pgqueue_admin.console.overview.view import View
from pgqueue_admin.records import clock
from pgqueue_admin.records.models import Queue

SHOWN = 30  # rows that a page may show


def overview(since: str) -> dict[str, str]:
    """Topic ``overview:1764244800``: what began after that instant is new to who looks."""
    view = View(looks.read(since, clock.now()))
    said: dict[str, str] = {f"total.{total.name}": total.value for total in view.totals}
    said |= {f"total.{total.name}.more": total.detail for total in view.totals}
    for need in [*view.needs.new[:MOST], *view.needs.older[:MOST]]:
        said[f"need.{need.key}"] = row(need)
    return {
        **said,
        "@order": board.ranks(view.rows),
        **parts.live_verdict("verdict", view.verdict.tone, view.verdict.sentence),
        "verdict.rest": view.verdict.rest,
        "@needs": ",".join(need.key for need in view.needs.open),
        "@say": view.verdict.spoken,
        "@title": view.verdict.title,
    }


def looked(said: str) -> str:
    """The argument of the topic in one spelling."""
    return looks.said(looks.read(said, clock.counted()))


def shown(said: str) -> str | None:
    """The ids of a page's rows."""
    return several(said, SHOWN)


def rows(ids: str) -> dict[str, str]:
    """Topic ``rows:3,8,12``: the cells of these queues."""
    said: dict[str, str] = {}
    for each in board.load(Queue.objects.filter(pk__in=ids.split(",")).select_related("latest")):
        said |= cells.live(each)
    return said


def row(need: Need) -> str:
    return render_to_string("pgqueue_admin/overview/need.html", {"need": need, "still": True})

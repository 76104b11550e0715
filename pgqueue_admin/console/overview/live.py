"""Live updates of Overview with each sample. Rows are a topic of their own: a page keeps those it was loaded with."""

from django.template.loader import render_to_string

from pgqueue_admin.console import components
from pgqueue_admin.console.overview import last_visit
from pgqueue_admin.console.overview.needs_attention import MOST, NeedRow
from pgqueue_admin.console.overview.page_data import OverviewData
from pgqueue_admin.console.parsing import parse_ints
from pgqueue_admin.console.queue_row import cells
from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.models import Queue, database_clock

SHOWN = 30  # rows that a page may show


def overview(since: str) -> dict[str, str]:
    """Topic ``overview:1764244800``: what began after that instant is new to this person."""
    view = OverviewData(last_visit.read(since, database_clock.now()))
    said: dict[str, str] = {f"total.{total.name}": total.value for total in view.totals}
    said |= {f"total.{total.name}.more": total.detail for total in view.totals}
    for need in [*view.needs.new[:MOST], *view.needs.older[:MOST]]:
        said[f"need.{need.key}"] = row(need)
    return {
        **said,
        "@order": queue_rows.ranks(view.rows),
        **components.live_verdict("verdict", view.verdict.tone, view.verdict.sentence),
        "verdict.rest": view.verdict.rest,
        "@needs": ",".join(need.key for need in view.needs.open),
        "@say": view.verdict.spoken,
        "@title": view.verdict.title,
    }


def looked(said: str) -> str:
    """The topic's argument in one spelling."""
    return last_visit.said(last_visit.read(said, database_clock.counted()))


def shown(said: str) -> str | None:
    """The ids of a page's rows."""
    return parse_ints(said, SHOWN)


def rows(ids: str) -> dict[str, str]:
    """Topic ``rows:3,8,12``: the cells of these queues."""
    said: dict[str, str] = {}
    for each in queue_rows.load(Queue.objects.filter(pk__in=ids.split(",")).select_related("latest")):
        said |= cells.live(each)
    return said


def row(need: NeedRow) -> str:
    return render_to_string("pgqueue_admin/overview/need.html", {"need": need, "still": True})

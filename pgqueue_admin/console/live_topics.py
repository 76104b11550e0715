"""Topics that open pages subscribe to.

Registered when the web process loads its URLs, woken by NOTIFY on ``default``.
"""

from pgqueue_admin.console import navigation
from pgqueue_admin.console.alerts import rows
from pgqueue_admin.console.delayed import rows as delayed
from pgqueue_admin.console.failures import live as failures
from pgqueue_admin.console.messages.detail import followed_message
from pgqueue_admin.console.operations import live_progress
from pgqueue_admin.console.overview import live as overview
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.console.queues import table
from pgqueue_admin.console.queues.detail import page_data as queue
from pgqueue_admin.console.schedules import live as schedules
from pgqueue_admin.console.workers import cells
from pgqueue_admin.formatting import times
from pgqueue_admin.live.topics import Render, register
from pgqueue_admin.models import notify


def queues(sort: str) -> dict[str, str]:
    """Topic ``queues:-ready``: the cells of all rows and, in the default order (worst first), each row's rank."""
    found = queue_rows.load()
    return {**table.live(found), **({} if sort else {"@order": queue_rows.ranks(found)})}


def untitled(render: Render) -> Render:
    """The same topic for a page that has a title of its own (CONSOLE L11)."""
    return lambda said: {key: value for key, value in render(said).items() if key != "@title"}


def number(said: str) -> str | None:
    """The argument of ``queue:12`` or ``op:3``, without leading zeros."""
    found = parse_int(said)
    return None if found is None else str(found)


def register_all() -> None:
    everything = (notify.SAMPLE, notify.ALERT, notify.PROCESS, notify.OPERATION, notify.ENDPOINT)
    register("frame", navigation.live, *everything, narrowed=True)
    register("overview", overview.overview, *everything, argument=overview.looked, narrowed=True)
    register("queues", queues, notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, argument=table.sorting, narrowed=True)
    register("queue", queue.live, notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, argument=number, narrowed=True)
    register(
        "messages", untitled(queue.live), notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, argument=number, narrowed=True
    )
    register(
        "rows",
        overview.rows,
        notify.SAMPLE,
        notify.PROCESS,
        notify.ENDPOINT,
        argument=overview.shown,
        narrowed=True,
    )
    register("delayed", delayed.live, notify.SAMPLE, narrowed=True)
    register("schedules", schedules.live, notify.SAMPLE, narrowed=True)
    register("failures", failures.live, notify.SAMPLE, notify.OPERATION, argument=failures.shown, narrowed=True)
    register("alerts", rows.live, notify.ALERT, argument=lambda zone: str(times.zone(zone)), narrowed=True)
    register("warnings", rows.live_rows, notify.ALERT, argument=rows.shown, narrowed=True)
    register("alert", untitled(rows.live), notify.ALERT, argument=lambda zone: str(times.zone(zone)), narrowed=True)
    register("op", live_progress.live, notify.OPERATION, notify.SAMPLE, argument=number, narrowed=True)
    register(
        "message",
        followed_message.archived,
        notify.OPERATION,
        notify.SAMPLE,
        argument=followed_message.archived_argument,
        narrowed=True,
    )
    register(
        "waiting", followed_message.waiting, notify.SAMPLE, argument=followed_message.waiting_argument, narrowed=True
    )
    register("workers", cells.live, notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, narrowed=True)
    register("endpoints", untitled(cells.of_list), notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, narrowed=True)
    register(
        "endpoint",
        cells.of_endpoint,
        notify.SAMPLE,
        notify.PROCESS,
        notify.ENDPOINT,
        argument=number,
        narrowed=True,
    )

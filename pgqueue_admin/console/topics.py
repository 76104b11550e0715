"""What open pages may follow: registered when the web process reads its urls, woken by NOTIFY on ``default``."""

from pgqueue_admin.console import alerts, navigation, process_cells
from pgqueue_admin.console.board import rows as board
from pgqueue_admin.console.delayed import rows as delayed
from pgqueue_admin.console.numbers import whole
from pgqueue_admin.console.operation import progress
from pgqueue_admin.console.overview import live as overview
from pgqueue_admin.console.queue import view as queue
from pgqueue_admin.console.queues import table
from pgqueue_admin.console.reading import following
from pgqueue_admin.live.topics import Render, register
from pgqueue_admin.records import notify
from pgqueue_admin.wording import times


def queues(sort: str) -> dict[str, str]:
    """Topic ``queues:-ready``: all rows; where the worst stand first, how grave each is now."""
    found = board.load()
    return {**table.live(found), **({} if sort else {"@order": board.ranks(found)})}


def untitled(render: Render) -> Render:
    """The same for a page that has a title of its own (CONSOLE L11)."""
    return lambda said: {key: value for key, value in render(said).items() if key != "@title"}


def number(said: str) -> str | None:
    """``queue:12``, ``op:3``; however many zeros are before it."""
    found = whole(said)
    return None if found is None else str(found)


def register_all() -> None:
    everything = (notify.SAMPLE, notify.ALERT, notify.PROCESS, notify.OPERATION, notify.ENDPOINT)
    register("frame", navigation.live, *everything)
    register("overview", overview.overview, *everything, argument=overview.looked)
    register("queues", queues, notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, argument=table.sorting)
    register("queue", queue.live, notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, argument=number)
    register("messages", untitled(queue.live), notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, argument=number)
    register("rows", overview.rows, notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, argument=overview.shown)
    register("delayed", delayed.live, notify.SAMPLE)
    register("alerts", alerts.live, notify.ALERT, argument=lambda zone: str(times.zone(zone)))
    register("warnings", alerts.live_rows, notify.ALERT, argument=alerts.shown)
    register("alert", untitled(alerts.live), notify.ALERT, argument=lambda zone: str(times.zone(zone)))
    register("op", progress.live, notify.OPERATION, notify.SAMPLE, argument=number)
    register(
        "message",
        following.archived,
        notify.OPERATION,
        notify.SAMPLE,
        argument=following.archived_argument,
    )
    register("waiting", following.waiting, notify.SAMPLE, argument=following.waiting_argument)
    register("workers", process_cells.live, notify.SAMPLE, notify.PROCESS, notify.ENDPOINT)
    register("endpoints", untitled(process_cells.of_list), notify.SAMPLE, notify.PROCESS, notify.ENDPOINT)
    register("endpoint", process_cells.of_endpoint, notify.SAMPLE, notify.PROCESS, notify.ENDPOINT, argument=number)

"""The figures and links of a mail: what is known of the warning's queue at this moment."""

from typing import NamedTuple

from pgqueue_admin.alerts import links, places
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.monitor import judge
from pgqueue_admin.records.models import Alert, Queue
from pgqueue_admin.wording.durations import duration, plain
from pgqueue_admin.wording.figures import NOT_SEEN, about, counted, figure, integer


class Line(NamedTuple):
    label: str
    now: str
    compare: str = ""

    def __str__(self) -> str:
        return f"  {self.label:<24}{self.now:>14}   {self.compare}".rstrip()


class Link(NamedTuple):
    label: str
    url: str


def of(look: Look, alert: Alert) -> list[Line]:
    """What died, then the queue as the newest sample has it."""
    lines = [] if alert.resolved_at else [Line(alert.value or "now", "", "")]
    if alert.kind == "dead_message":
        lines = _dead(look, alert)
    queue = look.queue_of(alert)
    return [*lines, *_sampled(look, queue)] if queue and hasattr(queue, "latest") else lines


def _dead(look: Look, alert: Alert) -> list[Line]:
    lying = [group for group in look.lying or [] if group.queue == alert.queue]
    by_cause = sum(group.count for group in lying if group.cause == alert.cause)
    causes = sum(group.causes for group in lying)
    told = f"{integer(alert.told_count)} told before" if alert.told_count else ""
    here = "dead by this cause" if alert.cause else "dead by other causes"
    return [
        Line(here, integer(by_cause), f"target {alert.threshold}"),
        Line("died since it began", integer(alert.count), told),
        Line("dead in this queue", integer(sum(group.count for group in lying)), f"by {counted(causes, 'cause')}"),
    ]


def _sampled(look: Look, queue: Queue) -> list[Line]:
    sample = queue.latest
    age = judge.age(sample, look.now)
    none = NOT_SEEN if judge.age_is_unknown(sample) else "none waits"
    target = f"target {plain(queue.target_age_seconds)}" if queue.target_age_seconds is not None else ""
    return [
        Line("ready", figure(sample.ready, sample.how)),
        Line("oldest ready", about(sample.oldest_how) + duration(age) if age is not None else none, target),
    ]


def types(look: Look, alert: Alert) -> list[str]:
    """Which message types died of it just now."""
    for group in look.deaths:
        if (group.queue, group.cause) == (alert.queue, alert.cause):
            return group.types
    return []


def links_of(alert: Alert) -> list[Link]:
    found, address = [Link("The warning", links.warning(alert.pk))], places.page_of(alert)
    if alert.kind == "dead_message":
        found.append(Link("The messages", links.archive(alert.queue, alert.cause)))
    if alert.kind == "fatal_message":
        found.append(Link("Move that message out", links.fatal(alert.subject)))
    return [*found, Link("The queue", links.queue(address))] if address else found

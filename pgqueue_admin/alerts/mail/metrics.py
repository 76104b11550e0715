"""Figures and links of a mail: the present state of the warning's queue."""

from typing import NamedTuple

from pgqueue_admin.alerts import display_names
from pgqueue_admin.alerts.failures_of import Failures
from pgqueue_admin.alerts.mail import links
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting.durations import duration, plain
from pgqueue_admin.formatting.numbers import NOT_SEEN, about, format_figure, format_int, pluralize
from pgqueue_admin.models import Alert, FailureGroup, Queue
from pgqueue_admin.monitor import targets
from pgqueue_admin.services import content_access

LONGEST_FRAME = 80
NO_FAILURES = Failures()


class MailMetric(NamedTuple):
    label: str
    now: str
    compare: str = ""

    def __str__(self) -> str:
        return f"  {self.label:<24}{self.now:>14}   {self.compare}".rstrip()


class MailLink(NamedTuple):
    label: str
    url: str


def of(look: AlertSnapshot, alert: Alert) -> list[MailMetric]:
    """Return the dead messages, then the queue's figures from the newest sample."""
    lines = [] if alert.resolved_at else [MailMetric(alert.value or "now", "", "")]
    if alert.kind == "dead_message":
        lines = _dead(look, alert)
    queue = look.queue_of(alert)
    return [*lines, *_sampled(look, queue)] if queue and hasattr(queue, "latest") else lines


def _dead(look: AlertSnapshot, alert: Alert) -> list[MailMetric]:
    lying = [group for group in look.lying or [] if group.queue == alert.queue]
    by_cause = sum(group.count for group in lying if group.cause == alert.cause)
    causes = sum(group.causes for group in lying)
    told = f"{format_int(alert.notified_count)} told before" if alert.notified_count else ""
    here = "dead by this cause" if alert.cause else "dead by other causes"
    return [
        MailMetric(here, format_int(by_cause), f"target {alert.threshold}"),
        MailMetric("died since it began", format_int(alert.count), told),
        MailMetric(
            "dead in this queue", format_int(sum(group.count for group in lying)), f"by {pluralize(causes, 'cause')}"
        ),
    ]


def _sampled(look: AlertSnapshot, queue: Queue) -> list[MailMetric]:
    sample = queue.latest
    age = targets.age(sample, look.now)
    none = NOT_SEEN if targets.age_is_unknown(sample) else "none waits"
    target = f"target {plain(queue.target_age_seconds)}" if queue.target_age_seconds is not None else ""
    return [
        MailMetric("ready", format_figure(sample.ready, sample.how)),
        MailMetric("oldest ready", about(sample.oldest_how) + duration(age) if age is not None else none, target),
    ]


def types(look: AlertSnapshot, alert: Alert) -> list[str]:
    """Return the message types that just died of this cause."""
    for group in look.deaths:
        if (group.queue, group.cause) == (alert.queue, alert.cause):
            return group.types
    return []


def known(failures: Failures) -> list[str]:
    """Return what people recorded on its failures: owner, ticket and note of each."""
    access = content_access.of_everybody()
    return [said for group in failures.said if (said := _known(access.failure(group)))]


def _known(group: FailureGroup) -> str:
    frame = f" (at {group.frame[:LONGEST_FRAME]})" if group.frame else ""
    whose = ", ".join(filter(None, [group.owner and f"owner {group.owner}", group.ticket]))
    return f"{'; '.join(filter(None, [whose, ' '.join(group.note.split())]))}{frame}"


def links_of(alert: Alert, failures: Failures = NO_FAILURES) -> list[MailLink]:
    found, address = [MailLink("The warning", links.warning(alert.pk))], display_names.page_of(alert)
    if alert.kind == "dead_message":
        found.append(_to_failures(alert, failures))
        found.append(MailLink("The messages", links.archive(alert.queue, alert.cause)))
    if alert.kind == "crashing_message":
        found.append(MailLink("Move that message out", links.crashing_message(alert.subject)))
    return [*found, MailLink("The queue", links.queue(address))] if address else found


def _to_failures(alert: Alert, failures: Failures) -> MailLink:
    """Link to the page of the only failure, else to the list of them."""
    if failures.only:
        which = f"The failure of the newest {failures.newest}" if failures.newest else "The failure"
        return MailLink(f"{which}: owner, note, retry", links.failure(failures.only))
    return MailLink("The failures, with notes", links.failures(alert.queue, alert.cause))

"""Defines a warning kind: its name, its title, and the function that finds it."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.snapshot import AlertSnapshot


def always(look: AlertSnapshot) -> bool:
    return True


def nothing(look: AlertSnapshot) -> Collection[str]:
    return ()


def sees_queues(look: AlertSnapshot) -> bool:
    return look.sees_queues


def sees_archive(look: AlertSnapshot) -> bool:
    return look.lying is not None


@dataclass(frozen=True, slots=True)
class AlertKind:
    """``can_tell`` is False while the kind's figures are missing: then its open warnings stay unchanged. So do those of
    ``unknown`` subjects and, of a kind ``by_samples``, those of unreadable queues.
    """

    name: str
    title: str
    find: Callable[[AlertSnapshot], Iterable[Finding]]
    can_tell: Callable[[AlertSnapshot], bool] = always
    by_samples: bool = False  # judges queues by their samples
    unknown: Callable[[AlertSnapshot], Collection[str]] = (
        nothing  # subjects, or addresses of readable queues, whose figure is unknown now
    )
    mailed: bool = False
    counts: bool = False  # deaths: doubling is mailed, too
    threshold: str = "target"  # its word in a mail's subject; empty: none
    settle: timedelta = timedelta(0)  # how long its first mail waits for more
    ends_silently: bool = False  # its end is not mailed
    linger: timedelta = timedelta(0)  # how long it must be absent before it is over: figures fluctuate


HOVERING = timedelta(seconds=30)

"""What a warning kind is: its name, how it is titled, and the function that finds it."""

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
    """``can_tell`` is False while the kind's figures are missing: then what is open stays as it stands. So does what is
    open of an ``unknown`` subject; and of a kind ``by_samples`` that of a queue which cannot be read.
    """

    name: str
    title: str
    find: Callable[[AlertSnapshot], Iterable[Finding]]
    can_tell: Callable[[AlertSnapshot], bool] = always
    by_samples: bool = False  # judges a queue by its figures
    unknown: Callable[[AlertSnapshot], Collection[str]] = (
        nothing  # subjects, or addresses of queues that are read, of which this figure is not known now
    )
    mailed: bool = False
    counts: bool = False  # deaths: when they have doubled, that is mailed, too
    threshold: str = "target"  # what a mail's subject calls it; empty: there is none
    settle: timedelta = timedelta(0)  # how long its first mail waits for what belongs to it
    ends_silently: bool = False  # no mail says that it is over
    linger: timedelta = timedelta(0)  # how long it must be gone before it counts as over: figures hover


HOVERING = timedelta(seconds=30)

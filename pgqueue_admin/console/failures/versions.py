"""The versions of the code in which a failure's messages died, and those that worked beside these without it.

Known from our processes, by the host and time of a death, and from headers that name a version. What neither shows is
not guessed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.archive import long_headers
from pgqueue_admin.console.failures.comparison import hidden_headers
from pgqueue_admin.models import Process
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.transport.wire import headers as h

MOST_PROCESSES = 500  # of its endpoints: those that were at work last
MOST_HEADERS, MOST_VALUES = 3, 6
LONGEST = 60  # characters of a version
CLOCKS = timedelta(minutes=1)  # by which the clocks of hosts may differ
_NAMES_A_VERSION = re.compile(r"(?<![A-Za-z])version$|(?<![A-Z])Version$")


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version that our processes ran while the failure occurred. ``dead``: compared messages that died in it.

    ``handled``: by these processes in all their time; ``since``: when the first of them started. ``worked``: one of
    them received a message after the first death.
    """

    version: str
    dead: int
    since: datetime
    hosts: Sequence[str]
    handled: int
    worked: bool


@dataclass(frozen=True, slots=True)
class HeaderRow:
    """A header's value: in how many compared messages, and in how many other messages of the same time and queues."""

    name: str
    value: str
    dead: int
    others: int


@dataclass(frozen=True, slots=True)
class Versions:
    """``looked``: how many of its messages were compared; ``known``: for how many of these the version is known.

    ``knows_first``: also for the first death. ``number``: all its messages, whatever became of them. ``beside``: how
    many other messages were read.
    """

    looked: int
    known: int
    number: int
    knows_first: bool
    rows: Sequence[VersionRow] = ()
    headers: Sequence[HeaderRow] = ()
    beside: int = 0
    first_at: datetime | None = None

    @property
    def only(self) -> VersionRow | None:
        """The one version of all deaths whose version is known."""
        found = [row for row in self.rows if row.dead]
        return found[0] if len(found) == 1 else None

    @property
    def without(self) -> list[VersionRow]:
        """Versions that handled messages meanwhile, and in which none of the compared messages died."""
        return [row for row in self.rows if not row.dead and row.worked]

    @property
    def is_whole(self) -> bool:
        """Whether the version of every death is known: only then is another version known to be free of it."""
        return self.knows_first and self.known == self.looked == self.number

    @property
    def is_older(self) -> bool:
        """Whether the first death was before that one version started."""
        return bool(self.only and self.first_at and self.only.since > self.first_at + CLOCKS)


def by_processes(
    members: Sequence[Any], processes: Iterable[Process], first_at: datetime, now: datetime, number: int
) -> Versions:
    """``members``: rows of ``failure_groups.members``, of ``number``; ``processes``: alive at ``first_at`` or later."""
    at_work = list(processes)
    counted, knows_first = Counter[str](), False
    for member in members:
        found = {each.code_version for each in at_work if _had(each, member, now)}
        # during an update a host runs two versions, or one without a name: which one had the message is unknown
        if len(found) == 1 and (version := found.pop()):
            counted[version] += 1
            knows_first = knows_first or member.died_at <= first_at
    named: dict[str, list[Process]] = {}
    for process in at_work:
        if process.code_version:
            named.setdefault(process.code_version, []).append(process)
    rows = [_row(version, of, counted[version], first_at) for version, of in named.items()]
    rows.sort(key=lambda row: (-row.dead, row.since))
    return Versions(len(members), counted.total(), number, knows_first, rows, first_at=first_at)


def at_work(members: Sequence[Any], first_at: datetime) -> list[Process]:
    """Our processes of the endpoints in which they died, alive at the first death or later."""
    endpoints = {member.endpoint for member in members if member.endpoint}
    of_these = Process.objects.filter(role="endpoint", endpoint__in=endpoints).exclude(ended_at__lt=first_at)
    return list(of_these.exclude(heartbeat_at__lt=first_at).order_by("-heartbeat_at")[:MOST_PROCESSES])


def _had(process: Process, member: Any, now: datetime) -> bool:
    """Whether the process may have had the message in flight."""
    is_there = process.endpoint == member.endpoint and process.host == member.machine
    ended = process.ended_at or max(process.heartbeat_at, now - CLOCKS)
    return is_there and process.started_at - CLOCKS <= member.died_at <= ended + CLOCKS


def _row(version: str, processes: Sequence[Process], dead: int, first_at: datetime) -> VersionRow:
    hosts = sorted({process.host for process in processes})
    since, handled = min(each.started_at for each in processes), sum(each.handled for each in processes)
    worked = any(each.handled and each.received_at and each.received_at >= first_at for each in processes)
    return VersionRow(version[:LONGEST], dead, since, hosts, handled, worked)


def are_named(members: Sequence[Any], access: ContentAccess) -> bool:
    """Whether one of their headers names a version; otherwise no other messages need to be read."""
    its = _counted(members, access)
    return bool(its.values.keys() - its.hidden)


def by_headers(members: Sequence[Any], others: Sequence[Any], access: ContentAccess) -> list[HeaderRow]:
    """``others``: messages of the same queues and time that did not die of it.

    Only headers with more than one value among both. A header that a masking rule hides in any message is left out.
    """
    its, theirs = _counted(members, access), _counted(others, access)
    hidden = its.hidden | theirs.hidden
    names = [name for name, values in its.values.items() if name not in hidden and len(values) <= MOST_VALUES]
    found = []
    for name in sorted(names)[:MOST_HEADERS]:
        beside = theirs.values.get(name, Counter())
        values = [*its.values[name], *(each for each, _ in beside.most_common(MOST_VALUES))]
        if len(set(values)) > 1:
            told = dict.fromkeys(values)
            found += [HeaderRow(name, each[:LONGEST], its.values[name][each], beside[each]) for each in told]
    return found


@dataclass(slots=True)
class _Counted:
    values: dict[str, Counter[str]]
    hidden: set[str]


def _counted(messages: Sequence[Any], access: ContentAccess) -> _Counted:
    found = _Counted({}, set())
    for message in messages:
        given, trouble = long_headers.read(message.headers, message.headers_length)
        if trouble:
            continue
        named = {name: value for name, value in given.items() if value and names_a_version(name)}
        found.hidden |= hidden_headers(named, message, access)
        for name, value in named.items():
            found.values.setdefault(name, Counter())[value] += 1
    return found


def names_a_version(header: str) -> bool:
    """``Shop.Version``, ``app-version``; not the framework's own header, which says nothing about the code."""
    return header != h.VERSION and _NAMES_A_VERSION.search(header) is not None

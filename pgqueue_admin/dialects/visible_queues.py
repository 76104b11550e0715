"""Queues that the person served by this thread may see and act on; by default all.

Kept here, next to the deadline: queries below all pages filter by it, so that a new page cannot forget to.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pgqueue_admin.dialects.address import Address

LEASE_NAME = '"messages"."message"'


@dataclass(frozen=True, slots=True)
class VisibleQueues:
    """Visible queues of a person whose groups have scopes. Equal sets share live renderings.

    ``names``: canonical addresses, as the archive and warnings have them; ``ids``: rows of the console's queues.
    """

    seen: frozenset[Address]
    acted_on: frozenset[Address]
    ids: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    acted_on_names: tuple[str, ...] = ()
    there: int = 0  # number of ``seen`` that still exist
    team: tuple[int, ...] = ()  # ids of the person's groups with scopes, in order

    @property
    def acted_on_alone(self) -> "VisibleQueues":
        """The queues they may act on, as visible ones, to limit an act's reach in the archive; without console rows."""
        return VisibleQueues(self.acted_on, self.acted_on, (), self.acted_on_names, self.acted_on_names)

    def sees(self, address: Address) -> bool:
        return address in self.seen

    def sees_name(self, name: str | None) -> bool:
        """``name``: canonical, as the archive has it. None: the lease queue, which original clients do not name."""
        return (name or LEASE_NAME) in self.names

    def acts_on_name(self, name: str | None) -> bool:
        return (name or LEASE_NAME) in self.acted_on_names


Ask = Callable[[], VisibleQueues | None]


class _Asked:
    """Calls ``ask`` once, on the first query."""

    def __init__(self, ask: Ask):
        self._ask: Ask | None = ask
        self._found: VisibleQueues | None = None

    def found(self) -> VisibleQueues | None:
        if self._ask is not None:
            with within(None):  # ``ask`` reads queues, too
                self._found = self._ask()
            self._ask = None
        return self._found


_asked: ContextVar[_Asked | None] = ContextVar("visible_queues", default=None)


def begin(ask: Ask) -> None:
    _asked.set(_Asked(ask))


def end() -> None:
    _asked.set(None)


def current() -> VisibleQueues | None:
    """The visible queues; None: all."""
    asked = _asked.get()
    return asked.found() if asked else None


def names() -> list[str] | None:
    """Canonical addresses, for a statement on the archive. None: all queues."""
    seen = current()
    return list(seen.names) if seen else None


@contextmanager
def within(seen: VisibleQueues | None) -> Iterator[None]:
    """Set the visible queues for a new thread, or for a block."""
    before = _asked.set(None if seen is None else _Asked(lambda: seen))
    try:
        yield
    finally:
        _asked.reset(before)

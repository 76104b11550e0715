"""Which queues the person may see, and act on, for whom this thread asks. Where nobody said so: all of them.

Kept beside the deadline of a look: what reads queues below all pages narrows itself, and a new page cannot forget it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pgqueue_admin.dialects.address import Address

LEASE_NAME = '"messages"."message"'


@dataclass(frozen=True, slots=True)
class VisibleQueues:
    """Of a person whose groups have scopes. Two of whom the same is seen are equal, and share what is rendered live.

    ``names``: canonical addresses, as the archive and warnings have them; ``ids``: rows of the console's queues.
    """

    seen: frozenset[Address]
    acted_on: frozenset[Address]
    ids: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    acted_on_names: tuple[str, ...] = ()
    there: int = 0  # of the seen those that are not gone
    team: tuple[int, ...] = ()  # numbers of their groups with scopes, in order

    @property
    def acted_on_alone(self) -> "VisibleQueues":
        """For how far an act of theirs would reach in the archive; of the console's rows it sees none."""
        return VisibleQueues(self.acted_on, self.acted_on, (), self.acted_on_names, self.acted_on_names)

    def sees(self, address: Address) -> bool:
        return address in self.seen

    def sees_name(self, name: str | None) -> bool:
        """``name``: canonical, as the archive has it. None: of the lease queue, which original clients do not name."""
        return (name or LEASE_NAME) in self.names

    def acts_on_name(self, name: str | None) -> bool:
        return (name or LEASE_NAME) in self.acted_on_names


Ask = Callable[[], VisibleQueues | None]


class _Asked:
    """Asked when the first query wants to know, and once."""

    def __init__(self, ask: Ask):
        self._ask: Ask | None = ask
        self._found: VisibleQueues | None = None

    def found(self) -> VisibleQueues | None:
        if self._ask is not None:
            with within(None):  # whoever finds it out reads queues, too
                self._found = self._ask()
            self._ask = None
        return self._found


_asked: ContextVar[_Asked | None] = ContextVar("visible_queues", default=None)


def begin(ask: Ask) -> None:
    _asked.set(_Asked(ask))


def end() -> None:
    _asked.set(None)


def current() -> VisibleQueues | None:
    """None: all queues."""
    asked = _asked.get()
    return asked.found() if asked else None


def names() -> list[str] | None:
    """Canonical addresses, for a statement of the archive. None: all queues."""
    seen = current()
    return list(seen.names) if seen else None


@contextmanager
def within(seen: VisibleQueues | None) -> Iterator[None]:
    """For a thread of its own, and for a part."""
    before = _asked.set(None if seen is None else _Asked(lambda: seen))
    try:
        yield
    finally:
        _asked.reset(before)

"""How many streams each session has open: no browser shows more pages at once than it may have."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

MOST = 12  # a hidden page closes its own, and browsers allow six connections to a host (over HTTP/2 more)
REFUSAL = f"{MOST} pages of this sign-in are open and followed already: close one, and this one goes on by itself.\n"


class StreamLimit:
    def __init__(self) -> None:
        self._streams: Counter[str] = Counter()

    def is_full(self, session: str) -> bool:
        return self._streams[session] >= MOST

    @contextmanager
    def one(self, session: str) -> Iterator[None]:
        self._streams[session] += 1
        try:
            yield
        finally:
            self._streams[session] -= 1
            self._streams += Counter()  # drops those that have none

"""All that receives for one endpoint, a receiver for each of its queues: started, paused and stopped together."""

import time
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.ports import HeldMessage, Observer
from pgqueue_admin.transport.receiving.message_pump import MessagePump
from pgqueue_admin.transport.settings import EndpointSettings


class EndpointReceivers:
    """Each has slots of its own: handlers that wait for an answer must not keep the answer out."""

    def __init__(self, by_queue: dict[Address, MessagePump]):
        self.by_queue = by_queue
        self._all = list(by_queue.values())

    def start(self) -> None:
        for receiver in self._all:
            receiver.start()

    def stop(self, drain_seconds: float) -> bool:
        """The endpoint's own queue first: until its handlers are done, answers may still come in."""
        until = time.monotonic() + drain_seconds
        return all([receiver.stop(max(0, until - time.monotonic())) for receiver in self._all])

    def pause(self) -> None:
        for receiver in self._all:
            receiver.pause()

    def resume(self) -> None:
        for receiver in self._all:
            receiver.resume()

    def apply(self, settings: EndpointSettings) -> None:
        for receiver in self._all:
            receiver.apply(settings)

    def wait(self) -> None:
        for receiver in self._all:
            receiver.wait()

    def is_one_of_ours(self) -> bool:
        """Whether this thread handles a message for one of these."""
        return any(receiver.is_one_of_ours() for receiver in self._all)

    @property
    def in_hand(self) -> int:
        return sum(receiver.in_hand for receiver in self._all)


class IndexedObserver:
    """The endpoint's observer for one of its queues: slot numbers are interleaved, so that no two queues share one."""

    def __init__(self, observer: Observer, place: int, several: int):
        self._observer, self._place, self._several = observer, place, several

    def in_hand(self, slot: int, message: HeldMessage | None) -> None:
        self._observer.in_hand(slot * self._several + self._place, message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observer, name)

"""After a fork the child leaves the parent's sessions and threads alone."""

import logging
import os
from typing import Protocol
from weakref import WeakSet

log = logging.getLogger("pgqueue_admin.transport")


class ForkAware(Protocol):
    def forget(self) -> None:
        """Begin anew, as if nothing had been opened; close nothing."""


_forgetful: WeakSet[ForkAware] = WeakSet()
forks = 0  # that lie behind this process: to ask the kernel for its number takes as long as a short handler


def forgets_in_child(each: ForkAware) -> None:
    _forgetful.add(each)


def _forget() -> None:
    global forks
    forks += 1
    for each in list(_forgetful):
        each.forget()


os.register_at_fork(after_in_child=_forget)


def end_child_since(before: int) -> None:
    """Where a handler forked and its child came back: it would go on as the receiver that its parent is, on one session
    with it. ``before``: how many ``forks`` lay behind who began to handle.
    """
    if forks != before:
        log.error("A handler forked, and its child came back from it: the child is ended, or it would receive as well")
        os._exit(1)

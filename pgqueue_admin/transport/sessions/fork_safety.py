"""After a fork the child leaves the parent's sessions and threads alone."""

import logging
import os
from typing import Protocol
from weakref import WeakSet

log = logging.getLogger("pgqueue_admin.transport")


class ForkAware(Protocol):
    def forget(self) -> None:
        """Reset to the initial state without closing anything."""


_forgetful: WeakSet[ForkAware] = WeakSet()
forks = 0  # of this process's ancestry; counted, because os.getpid() costs as much as a short handler


def forgets_in_child(each: ForkAware) -> None:
    _forgetful.add(each)


def _forget() -> None:
    global forks
    forks += 1
    for each in list(_forgetful):
        each.forget()


os.register_at_fork(after_in_child=_forget)


def end_child_since(before: int) -> None:
    """Exit in the child of a handler that forked and returned: it would continue as a second receiver, on its parent's
    session. ``before``: ``forks`` when handling began.
    """
    if forks != before:
        log.error("A handler forked, and its child came back from it: the child is ended, or it would receive as well")
        os._exit(1)

"""A forked child leaves its parent's sessions and threads alone: their sockets are shared, the threads not there."""

import os
from typing import Protocol
from weakref import WeakSet


class Forgetful(Protocol):
    def forget(self) -> None:
        """Begin anew, as if nothing had been opened; close nothing."""


_forgetful: WeakSet[Forgetful] = WeakSet()


def forgets_in_child(each: Forgetful) -> None:
    _forgetful.add(each)


def _forget() -> None:
    for each in list(_forgetful):
        each.forget()


os.register_at_fork(after_in_child=_forget)

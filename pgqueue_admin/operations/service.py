"""The one way to act on dead messages, for page, Django admin and command line (DESIGN decision 5)."""

from pgqueue_admin.operations.acting import act
from pgqueue_admin.operations.deciding import cancel, lapses_in, start
from pgqueue_admin.operations.errors import AlreadyDecided, NotAllowed, NothingChosen, Refused
from pgqueue_admin.operations.freezing import freeze, lapse
from pgqueue_admin.operations.looking import (
    changed,
    header_changes,
    items,
    made_of,
    not_done,
    samples,
    started_here,
    states,
    targets,
)
from pgqueue_admin.operations.running import UNFINISHED, in_hand, reconcile, run, run_chunk
from pgqueue_admin.operations.settling import settle

__all__ = [
    "UNFINISHED",
    "AlreadyDecided",
    "NotAllowed",
    "NothingChosen",
    "Refused",
    "act",
    "cancel",
    "changed",
    "freeze",
    "header_changes",
    "in_hand",
    "items",
    "lapse",
    "lapses_in",
    "made_of",
    "not_done",
    "reconcile",
    "run",
    "run_chunk",
    "samples",
    "settle",
    "start",
    "started_here",
    "states",
    "targets",
]

"""The one way to act on dead messages, for page, Django admin and command line (DESIGN decision 5)."""

from pgqueue_admin.services.operations.errors import (
    AlreadyDecided,
    EmptySelection,
    OperationNotAllowed,
    OperationRefused,
)
from pgqueue_admin.services.operations.lifecycle import cancel, lapses_in, start
from pgqueue_admin.services.operations.queries import (
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
from pgqueue_admin.services.operations.reconcile import settle
from pgqueue_admin.services.operations.runner import UNFINISHED, in_hand, reconcile, run, run_chunk
from pgqueue_admin.services.operations.selection import freeze, lapse
from pgqueue_admin.services.operations.single import act

__all__ = [
    "UNFINISHED",
    "AlreadyDecided",
    "EmptySelection",
    "OperationNotAllowed",
    "OperationRefused",
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

"""Acts on dead messages: page, Django admin and command line all come here (DESIGN decision 5)."""

from pgqueue_admin.services.operations import call_back, crossings, edits, plans, staged_retry
from pgqueue_admin.services.operations.errors import (
    AlreadyDecided,
    EmptySelection,
    OperationNotAllowed,
    OperationRefused,
)
from pgqueue_admin.services.operations.lifecycle import cancel, lapses_in, start
from pgqueue_admin.services.operations.queries import (
    causes,
    changed,
    header_changes,
    items,
    made_of,
    not_done,
    retry_targets,
    samples,
    started_here,
    states,
)
from pgqueue_admin.services.operations.reconcile import settle
from pgqueue_admin.services.operations.retry_controls import change_rate, go_on, pause
from pgqueue_admin.services.operations.runner import STEERED, UNFINISHED, in_hand, recount, run, run_chunk
from pgqueue_admin.services.operations.selection import freeze, freeze_discarded, lapse
from pgqueue_admin.services.operations.single import act

__all__ = [
    "STEERED",
    "UNFINISHED",
    "AlreadyDecided",
    "EmptySelection",
    "OperationNotAllowed",
    "OperationRefused",
    "act",
    "call_back",
    "cancel",
    "causes",
    "change_rate",
    "changed",
    "crossings",
    "edits",
    "freeze",
    "freeze_discarded",
    "go_on",
    "header_changes",
    "in_hand",
    "items",
    "lapse",
    "lapses_in",
    "made_of",
    "not_done",
    "pause",
    "plans",
    "recount",
    "retry_targets",
    "run",
    "run_chunk",
    "samples",
    "settle",
    "staged_retry",
    "start",
    "started_here",
    "states",
]

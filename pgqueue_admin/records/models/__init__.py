"""The console's own tables, a file per noun."""

from pgqueue_admin.records.models.alert import Alert, AlertMail, Cursor
from pgqueue_admin.records.models.audit import AuditEntry
from pgqueue_admin.records.models.dead import ArchivedMessage
from pgqueue_admin.records.models.endpoint import Endpoint
from pgqueue_admin.records.models.held import HeldAtDeath
from pgqueue_admin.records.models.operation import Operation
from pgqueue_admin.records.models.pipeline import (
    HistoryBatch,
    HistoryCompaction,
    HistoryDay,
    HistoryFile,
    HistoryPart,
    HistorySource,
    HistoryToken,
)
from pgqueue_admin.records.models.process import Process
from pgqueue_admin.records.models.queue import ExpiredCount, Queue, SmallestTtbr
from pgqueue_admin.records.models.sample import ArchiveSample, LatestSample, Sample
from pgqueue_admin.records.models.sign_in import FailedSignIn
from pgqueue_admin.records.models.trend import (
    CountedStep,
    DepthStep,
    FailureRollup,
    FailureStep,
    Rollup,
    StoryPart,
    TimedStep,
)
from pgqueue_admin.records.models.usual import SeenStep, Unusual

__all__ = [
    "Alert",
    "AlertMail",
    "ArchiveSample",
    "ArchivedMessage",
    "AuditEntry",
    "CountedStep",
    "Cursor",
    "DepthStep",
    "Endpoint",
    "ExpiredCount",
    "FailedSignIn",
    "FailureRollup",
    "FailureStep",
    "HeldAtDeath",
    "HistoryBatch",
    "HistoryCompaction",
    "HistoryDay",
    "HistoryFile",
    "HistoryPart",
    "HistorySource",
    "HistoryToken",
    "LatestSample",
    "Operation",
    "Process",
    "Queue",
    "Rollup",
    "Sample",
    "SeenStep",
    "SmallestTtbr",
    "StoryPart",
    "TimedStep",
    "Unusual",
]

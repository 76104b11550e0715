"""The console's own tables, a file per noun."""

from pgqueue_admin.models.alert import Alert, AlertMail, Cursor
from pgqueue_admin.models.api_token import ApiToken
from pgqueue_admin.models.archived_message import ArchivedMessage
from pgqueue_admin.models.audit import AuditEntry, AuditIntent
from pgqueue_admin.models.baseline import Anomaly, BaselineBucket
from pgqueue_admin.models.caught_duplicates import CaughtDuplicates
from pgqueue_admin.models.endpoint import Endpoint
from pgqueue_admin.models.failure_group import FailureGroup, TeamFailure
from pgqueue_admin.models.foreign_outbox import ForeignOutbox
from pgqueue_admin.models.history import (
    DataFile,
    FileBatch,
    FileToken,
    HistoryBatch,
    HistoryCompaction,
    HistorySource,
    RecomputeRequest,
)
from pgqueue_admin.models.in_flight_at_crash import InFlightAtCrash
from pgqueue_admin.models.lease_rule import LeaseRule
from pgqueue_admin.models.masking import MaskingReveal, MaskingRule
from pgqueue_admin.models.operation import Operation
from pgqueue_admin.models.outbox_first_seen import OutboxFirstSeen
from pgqueue_admin.models.payload_choice import PayloadChoice
from pgqueue_admin.models.posted_mark import PostedMark
from pgqueue_admin.models.process import Process
from pgqueue_admin.models.queue import ExpiredCount, MinimumTtbr, Queue
from pgqueue_admin.models.queue_scope import QueueScope
from pgqueue_admin.models.retry_plan import RetryPlan
from pgqueue_admin.models.retry_rule import RetryRule
from pgqueue_admin.models.rollups import (
    CountBucket,
    DepthBucket,
    FailureBucket,
    FailureRollup,
    LatencyBucket,
    RetryOutcome,
    Rollup,
)
from pgqueue_admin.models.sample import ArchiveSample, LatestSample, Sample
from pgqueue_admin.models.saved_view import DefaultView, SavedView
from pgqueue_admin.models.schedule import Schedule
from pgqueue_admin.models.sign_in import FailedSignIn
from pgqueue_admin.models.trial import Trial, TrialItem

__all__ = [
    "Alert",
    "AlertMail",
    "Anomaly",
    "ApiToken",
    "ArchiveSample",
    "ArchivedMessage",
    "AuditEntry",
    "AuditIntent",
    "BaselineBucket",
    "CaughtDuplicates",
    "CountBucket",
    "Cursor",
    "DataFile",
    "DefaultView",
    "DepthBucket",
    "Endpoint",
    "ExpiredCount",
    "FailedSignIn",
    "FailureBucket",
    "FailureGroup",
    "FailureRollup",
    "FileBatch",
    "FileToken",
    "ForeignOutbox",
    "HistoryBatch",
    "HistoryCompaction",
    "HistorySource",
    "InFlightAtCrash",
    "LatencyBucket",
    "LatestSample",
    "LeaseRule",
    "MaskingReveal",
    "MaskingRule",
    "MinimumTtbr",
    "Operation",
    "OutboxFirstSeen",
    "PayloadChoice",
    "PostedMark",
    "Process",
    "Queue",
    "QueueScope",
    "RecomputeRequest",
    "RetryOutcome",
    "RetryPlan",
    "RetryRule",
    "Rollup",
    "Sample",
    "SavedView",
    "Schedule",
    "TeamFailure",
    "Trial",
    "TrialItem",
]

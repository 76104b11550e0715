"""The lease queue: one table of messages, locked for a limited time, that end in an archive. Needs a DSN, no Django."""

from pgqueue_admin.dialects.lease_store import Ended, Expired, Outlook, Result
from pgqueue_admin.lease.errors import LeaseQueueMissing, MessageRefused, MessageUnreadable, Rejected
from pgqueue_admin.lease.handlers import LeaseHandlers
from pgqueue_admin.lease.message import DeadMessage, LeasedMessage
from pgqueue_admin.lease.queue import LeaseQueue
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.lease.worker import LeaseWorker

__all__ = [
    "DeadMessage",
    "Ended",
    "Expired",
    "LeaseHandlers",
    "LeaseQueue",
    "LeaseQueueMissing",
    "LeaseSettings",
    "LeaseWorker",
    "LeasedMessage",
    "MessageRefused",
    "MessageUnreadable",
    "Outlook",
    "Rejected",
    "Result",
]

"""The lease queue: one table of messages that are locked for a time, and end in an archive. Needs a DSN, no Django."""

from pgqueue_admin.dialects.lease_store import Ended, Expired, Result
from pgqueue_admin.lease.errors import MessageRefused, MessageUnreadable
from pgqueue_admin.lease.message import LeasedMessage
from pgqueue_admin.lease.queue import LeaseQueue

__all__ = ["Ended", "Expired", "LeaseQueue", "LeasedMessage", "MessageRefused", "MessageUnreadable", "Result"]

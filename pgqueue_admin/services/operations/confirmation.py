"""What a person must confirm before an operation starts: a reason, and a typed count."""

from dataclasses import dataclass

from pgqueue_admin.models import Operation

REASON_ABOVE = 20
TYPED_ABOVE = 100
LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True)
class Confirmation:
    count: int
    needs_reason: bool
    needs_count: bool

    def fault(self, reason: str, typed: str) -> str:
        """Why it may not start, as a sentence; empty: it may. ``typed``: the number of messages as typed."""
        if self.needs_reason and not reason:
            return f"Above {REASON_ABOVE} messages a reason is asked for. Nothing has started."
        if self.needs_count and typed.replace(",", "").strip() != str(self.count):
            return f"The set has {self.count:,} messages, you typed {typed or 'nothing'}. Nothing has started."
        return ""


def plan(operation: Operation) -> Confirmation:
    of_many = operation.kind == Operation.Kind.DISCARD and operation.count > TYPED_ABOVE
    dangerous = of_many or operation.kind == Operation.Kind.PURGE
    return Confirmation(operation.count, operation.count > REASON_ABOVE and not operation.reason, dangerous)


def reason(typed: str) -> str:
    """Clean a typed reason as the audit stores it."""
    return typed.replace("\0", "").strip()[:LONGEST_REASON]

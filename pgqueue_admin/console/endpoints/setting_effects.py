"""The effects of new settings in words, before they are saved, for the first group of settings."""

from collections.abc import Iterator
from dataclasses import dataclass

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.console.endpoints.form import EndpointSettingsForm
from pgqueue_admin.console.endpoints.health import EndpointHealth
from pgqueue_admin.formatting.durations import typed
from pgqueue_admin.formatting.numbers import format_int, pluralize
from pgqueue_admin.models import Endpoint


@dataclass
class Effect:
    """The effect of a form as it is typed. ``faults`` come first: with a fault, nothing is saved."""

    known: EndpointHealth
    form: EndpointSettingsForm

    @property
    def wanted(self) -> Endpoint:
        return self.form.wanted if self.form.is_bound and self.form.is_valid() else self.known.endpoint

    @property
    def faults(self) -> list[tuple[str, str]]:
        """The field's label, and its error."""
        return [
            (str(self.form[name].label) if name in self.form.fields else "", " ".join(map(str, said)))
            for name, said in (self.form.errors.items() if self.form.is_bound else ())
        ]

    @property
    def risks(self) -> list[Finding]:
        """The risks of the new values, including those that the present values have."""
        return peek_delay_rules.faults(self.wanted, self.known.ttbrs)

    @property
    def sentences(self) -> Iterator[str]:
        """For the settings that are changed most."""
        is_lease = self.known.endpoint.kind == Endpoint.Kind.LEASE
        yield from self._of_locks() if is_lease else self._of_peeks()
        yield self._of_concurrency()

    def _of_locks(self) -> Iterator[str]:
        row, today = self.wanted, self.known.endpoint
        lock, before = (typed(each) for each in (row.lock_seconds, today.lock_seconds))
        yield f"A message is locked for {lock}{_now(lock, before)}, and longer while it is handled."
        if row.on_lock_expired == Endpoint.LockExpired.RELEASE:
            yield f"Should its process die, it comes back, {pluralize(row.delayed_retries, 'time')} at most."
        else:
            yield f"Should its process die, it ends in the archive as lock_expired, {lock} later at most."

    def _of_peeks(self) -> Iterator[str]:
        row, today = self.wanted, self.known.endpoint
        delay = typed(row.peek_delay_ms / 1000)
        yield f"An idle {row.name} is looked at every {delay}{_now(delay, typed(today.peek_delay_ms / 1000))}."
        yield f"A message that arrives may wait for {delay}{', unless NOTIFY wakes a process' if _wakes(row) else ''}."
        yield f"{_batch(row.max_records_to_peek)}{_now(row.max_records_to_peek, today.max_records_to_peek)}."

    def _of_concurrency(self) -> str:
        row, today, have = self.wanted, self.known.endpoint, self.known.staff.have
        at_once = f"Each process handles up to {pluralize(row.concurrency, 'message')} at once"
        together = (
            f": {format_int(row.concurrency * have)} in {pluralize(have, 'process', 'processes')}" if have > 1 else ""
        )
        return f"{at_once}{_now(row.concurrency, today.concurrency)}{together}."


def _wakes(row: Endpoint) -> bool:
    return row.ours and row.notify


def _batch(most: int | None) -> str:
    if most is None:
        return "One look starts a receive for each message that it counts"
    return f"One look starts {pluralize(most, 'receive')} at most, then it looks again"


def _now(wanted: object, today: object) -> str:
    said = format_int(today) if isinstance(today, int) else today
    return "" if wanted == today else f" (now {said or 'as many as counted'})"

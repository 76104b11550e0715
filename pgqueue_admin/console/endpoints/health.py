"""An endpoint's condition: its processes, its input queue's newest sample, and the risks of its settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.console import url_converters, verdicts
from pgqueue_admin.console.verdicts import Verdict
from pgqueue_admin.console.workers import rows as processes
from pgqueue_admin.console.workers.rows import ProcessRow
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Endpoint, MinimumTtbr, Queue
from pgqueue_admin.models import expired_counts as expired
from pgqueue_admin.models import processes as records
from pgqueue_admin.models.endpoint_standings import Standing
from pgqueue_admin.models.expired_counts import ExpiredTotal
from pgqueue_admin.models.queue_database import queue_database


@dataclass
class EndpointHealth:
    """One endpoint as the list and its own page show it."""

    staff: records.EndpointProcesses
    queue: Queue | None
    ttbrs: Sequence[MinimumTtbr]

    @property
    def endpoint(self) -> Endpoint:
        return self.staff.endpoint

    @property
    def address(self) -> Address:
        return Address(self.endpoint.schema, self.endpoint.table)

    @property
    def rows(self) -> list[ProcessRow]:
        return [ProcessRow(process, self.endpoint) for process in self.staff.processes]

    def _sampled(self, field: str) -> Any:
        """A figure of the input queue's newest sample; None without a sample."""
        return getattr(getattr(self.queue, "latest", None), field, None)

    @property
    def received(self) -> float | None:
        return self._sampled("in_per_second")

    @property
    def left(self) -> float | None:
        """Messages that leave its queue per second: all that is known of an endpoint that runs elsewhere."""
        return self._sampled("out_per_second")

    @property
    def dead(self) -> int | None:
        return self._sampled("dead")

    @property
    def dead_path(self) -> str:
        return url_converters.dead(queue_database().dialect.canonical(self.address))

    @cached_property
    def expired(self) -> ExpiredTotal:
        return expired.of(self.endpoint)

    @property
    def versions(self) -> list[str]:
        return self.staff.versions

    @property
    def hosts(self) -> list[str]:
        return sorted({process.host for process in self.staff.running})

    @cached_property
    def faults(self) -> list[Finding]:
        return peek_delay_rules.faults(self.endpoint, self.ttbrs)

    @property
    def waits(self) -> list[peek_delay_rules.PeekDelayRisk]:
        """Each type that may expire, with what was observed of it, beside the peek delay (T16)."""
        return peek_delay_rules.risks(self.endpoint, self.ttbrs)

    @property
    def critical(self) -> bool:
        """Whether its settings lose messages, rather than may lose them."""
        return any(fault.severity == CRITICAL for fault in self.faults)

    @property
    def state(self) -> tuple[str, str]:
        """The state's word, and the state whose icon is drawn."""
        return processes.staff_state(self.staff) if self.endpoint.ours else ("runs elsewhere", "")

    @property
    def out(self) -> float | None:
        rate: float | None = self.staff.total("handled_per_second")
        return rate

    @property
    def critical_p50(self) -> float | None:
        return self.staff.worst("critical_p50_ms")

    @property
    def critical_p95(self) -> float | None:
        return self.staff.worst("critical_p95_ms")

    @property
    def processing_p95(self) -> float | None:
        return self.staff.worst("processing_p95_ms")


def verdict(standing: Sequence[Standing]) -> Verdict:
    """The verdict that opens Endpoints."""
    return verdicts.of_endpoints(standing) or Verdict("good", said := _all_run(len(standing)), said)


def _all_run(count: int) -> str:
    if count < 2:
        return "The only endpoint runs" if count else "No endpoint of ours is known yet"
    return f"All {count:,} endpoints run"


def health_of_all() -> list[EndpointHealth]:
    """All endpoints: ours first, and those with missing processes before the rest."""
    queues = {(queue.schema, queue.table): queue for queue in Queue.objects.select_related("latest")}
    ttbrs = list(MinimumTtbr.objects.all())
    foreign = [records.EndpointProcesses(endpoint, []) for endpoint in Endpoint.objects.filter(ours=False)]
    found = [_service(staff, queues, ttbrs) for staff in [*records.by_endpoint(), *foreign]]
    return sorted(found, key=lambda each: (not each.endpoint.ours, not each.staff.missing, each.endpoint.name))


def health_of(endpoint: Endpoint) -> EndpointHealth:
    queue = Queue.objects.select_related("latest").filter(schema=endpoint.schema, table=endpoint.table).first()
    staff = records.of_endpoint(endpoint.name) if endpoint.ours else records.EndpointProcesses(endpoint, [])
    return EndpointHealth(staff, queue, list(queue.ttbrs.all()) if queue else [])


def _service(
    staff: records.EndpointProcesses, queues: dict[tuple[str, str], Queue], ttbrs: list[MinimumTtbr]
) -> EndpointHealth:
    queue = queues.get((staff.endpoint.schema, staff.endpoint.table))
    return EndpointHealth(staff, queue, [ttbr for ttbr in ttbrs if queue and ttbr.queue_id == queue.pk])

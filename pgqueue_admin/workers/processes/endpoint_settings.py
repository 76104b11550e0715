"""Converts an endpoint's row into engine settings, and into text for its child processes."""

import json
import os
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings as django_settings

from pgqueue_admin.lease import LeaseSettings
from pgqueue_admin.models import Endpoint
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport.settings import EndpointSettings
from pgqueue_admin.workers.processes.outbox_ports import DurableFirstSeen, RelayAudit
from pgqueue_admin.workers.supervisor.managed_process import KNOWN_SETTINGS


def of_row(row: Endpoint) -> EndpointSettings:
    settings = EndpointSettings(
        peek_delay=row.peek_delay_ms / 1000,
        max_records_to_peek=row.max_records_to_peek,
        concurrency=row.concurrency,
        immediate_retries=row.immediate_retries,
        delayed_retries=row.delayed_retries,
        delayed_retry_step=row.delayed_retry_step_ms / 1000,
        on_exhausted=row.on_exhausted,  # type: ignore[arg-type]
        strict_peek_range=row.strict_peek_range,
        batch_size=row.batch_size,
        transaction_mode=row.transaction_mode,  # type: ignore[arg-type]
        repeek_after=row.repeek_after,  # type: ignore[arg-type]
        notify=row.notify,
        purge_expired_at_start=row.purge_expired_at_start,
        audit_queue=row.audit_queue,
        audit_ttbr=row.audit_ttbr_seconds,
        subscription_table=row.subscription_table,
        outbox=_outbox(row),
    )
    return replace(settings, error_queue=row.error_queue) if row.error_queue else settings


def _outbox(row: Endpoint) -> Outbox | None:
    if row.outbox == Endpoint.Outbox.OFF:
        return None
    return Outbox(
        concurrency=row.outbox,  # type: ignore[arg-type]
        isolation=None if row.outbox_isolation == Endpoint.Isolation.DEFAULT else row.outbox_isolation,  # type: ignore[arg-type]
        databases=django_settings.PGQUEUE["OUTBOX_DATABASES"],
        keep=timedelta(seconds=row.outbox_keep_seconds),
        clean_every=_span(row.outbox_clean_seconds),
        relay_after=_span(row.outbox_relay_seconds),
        first_seen=DurableFirstSeen(),
        relayed=RelayAudit(row.name),
    )


def isolation_by_default() -> Endpoint.Isolation:
    """What the default isolation of an outbox means in the engine."""
    return Endpoint.Isolation(Outbox(databases=django_settings.PGQUEUE["OUTBOX_DATABASES"]).isolation_level)


def isolation_said(row: Endpoint) -> str:
    """``Serializable``, ``Serializable, by default``."""
    wanted = Endpoint.Isolation(row.outbox_isolation)
    is_default = wanted == Endpoint.Isolation.DEFAULT
    return f"{isolation_by_default().label}, by default" if is_default else str(wanted.label)


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def lease_settings_of(row: Endpoint) -> LeaseSettings:
    """Retries wait as delayed retries of the transport do: one step, then two."""
    return LeaseSettings(
        lock_seconds=row.lock_seconds,
        renewed_for=row.renewed_for_seconds,
        concurrency=row.concurrency,
        retry_after=tuple(n * row.delayed_retry_step_ms / 1000 for n in range(1, row.delayed_retries + 1)),
        archive_success=row.archive_success,
        on_lock_expired=row.on_lock_expired,  # type: ignore[arg-type]
    )


def to_text(row: Endpoint) -> str:
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    return json.dumps(values, default=datetime.isoformat)


def row_at_start(name: str) -> Endpoint:
    """The settings that the supervisor knew: a child starts while the console's database is down. Else a query."""
    text = os.environ.get(KNOWN_SETTINGS)
    return from_text(text) if text else Endpoint.objects.get(name=name)


def from_text(text: str) -> Endpoint:
    values: dict[str, Any] = json.loads(text)
    return Endpoint(**values | {"changed_at": datetime.fromisoformat(values["changed_at"])})

"""A schedule as a person types it."""

from typing import Any

from django import forms

from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.lease.schedules import cron_timetable
from pgqueue_admin.models.queue_database import queue_database, queues_in
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.services import schedules
from pgqueue_admin.services.schedules import ScheduleDraft

CRON = [field.name for field in cron_timetable.FIELDS]
_NAMES = {"type": "message_type"}  # fields that a refusal names differently


class ScheduleForm(forms.Form):
    """``draft`` needs a bound form. A refusal to save is shown at its field."""

    name = forms.CharField(label="Name", max_length=schedules.MOST_NAME)
    message_type = forms.CharField(
        label="Sends",
        max_length=500,
        required=False,
        help_text="the type, such as Shop.InvoiceRun; a lease message has none",
    )
    to = forms.ChoiceField(label="To")
    zone = forms.CharField(label="Zone", max_length=100, help_text="such as Europe/Vienna, or UTC")
    minute, hour, day, month, weekday = (forms.CharField(label=name, max_length=60, required=False) for name in CRON)
    date = forms.CharField(
        label="Or a date, once",
        max_length=30,
        required=False,
        help_text="2026-11-28 06:00; the five fields are left aside",
    )
    message = forms.CharField(label="Body, JSON", strip=False)
    missed = forms.ChoiceField(
        label="Missed runs", choices=[("skip", "skip, and say so"), ("catch_up", "catch up once, the latest")]
    )

    def __init__(self, data: Any = None, saved: ScheduleDraft | None = None):
        super().__init__(data, initial=_typed(saved) if saved else _NEW)
        self.fields["to"].choices = _destinations(saved)  # type: ignore[attr-defined]
        if visible_queues.current():
            self.fields["name"].help_text = "a new one begins with its queue, such as public.Billing: nightly"

    @property
    def cron(self) -> list[Any]:
        return [self[name] for name in CRON]

    @property
    def wrong_part(self) -> str:
        """The errors of the expression."""
        return " ".join(str(error) for name in [*CRON, "date"] for error in self.errors.get(name, []))

    def value(self, name: str) -> str:
        return str(self[name].value() or "").strip()

    @property
    def expression(self) -> str:
        return self.value("date") or " ".join(self.value(name) or "*" for name in CRON)

    @property
    def draft(self) -> ScheduleDraft:
        given = {name: self.cleaned_data[name] for name in ("name", "to", "message_type", "message", "zone", "missed")}
        return ScheduleDraft(expression=self.expression, **given)

    def refuse(self, refused: ScheduleRefused) -> None:
        field = _NAMES.get(refused.field, refused.field)
        if field == "expression":
            field = CRON[refused.part] if refused.part is not None else "date" if self.value("date") else CRON[0]
        self.add_error(field if field in self.fields else None, str(refused))


_NEW = {
    "minute": "0",
    "hour": "6",
    "day": "*",
    "month": "*",
    "weekday": "*",
    "zone": "UTC",
    "missed": "skip",
    "message": "{}",
}


def _typed(saved: ScheduleDraft) -> dict[str, str]:
    parts = saved.expression.split()
    when = dict(zip(CRON, parts, strict=True)) if len(parts) == len(CRON) else {"date": saved.expression}
    about = {"name": saved.name, "message_type": saved.message_type, "to": saved.to, "zone": saved.zone}
    return {**about, **when, "message": escape_invisible.in_json(saved.message), "missed": saved.missed}


def _destinations(saved: ScheduleDraft | None) -> list[tuple[str, str]]:
    """The lease queue and known input queues, if they may be acted on; always the present destination."""
    canonical = queue_database().dialect.canonical
    known = queues_in("").filter(gone_since=None, kind=TableKind.INPUT).values_list("schema", "table")
    found = {canonical(Address(*each)): escape_invisible.plain(f"{each[1]} in {each[0]}") for each in known}
    found = {to: said for to, said in found.items() if schedules.may_be_sent_to(to)}
    to = saved.to if saved else ""
    if to and to != schedules.LEASE:
        found.setdefault(to, escape_invisible.plain(to))
    is_open = to == schedules.LEASE or schedules.may_be_sent_to(schedules.LEASE)
    lease = [(schedules.LEASE, "lease queue messages.message")] if is_open else []
    return [*lease, *sorted(found.items(), key=lambda each: each[1].lower())]

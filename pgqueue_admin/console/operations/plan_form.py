"""The plan form of a retry: the plans on offer, the fields as typed, and what is wrong with them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import durations
from pgqueue_admin.models import Operation, RetryPlan
from pgqueue_admin.services.operations import plans
from pgqueue_admin.services.operations.plans import Planned
from pgqueue_admin.services.permissions import name_of

AT_ONCE = "none"
WORDS = {"careful": "Careful", "flat": "All at 20/s", "mine": "Mine", AT_ONCE: "At once"}
_COUNTS = ("try_first", "then_some", "stop_dead", "stop_of")
_RATES = ("some_rate", "rest_rate")
_LENGTHS = ("watch_seconds", "give_up_seconds")


class NotReadable(Exception):
    """Quotes the input that cannot be parsed."""


@dataclass(frozen=True, slots=True)
class PlanForm:
    """``name``: of the chosen plan. ``fields``: the form's values; empty for At once."""

    name: str
    operation: Operation
    planned: Planned | None = None
    fields: dict[str, str] = field(default_factory=dict)
    kept: bool = True  # whether the engine's tables support stages

    @property
    def words(self) -> list[tuple[str, str]]:
        return list(WORDS.items())

    @property
    def is_staged(self) -> bool:
        return self.name != AT_ONCE

    @property
    def tried(self) -> int:
        return min(self.planned.try_first, self.operation.count) if self.planned else 0

    @property
    def some(self) -> int:
        return min(self.planned.then_some, self.operation.count - self.tried) if self.planned else 0

    @property
    def rest(self) -> int:
        return self.operation.count - self.tried - self.some

    @property
    def some_takes(self) -> float:
        return self.some / self.planned.some_rate if self.planned else 0.0

    @property
    def rest_takes(self) -> float:
        return self.rest / self.planned.rest_rate if self.planned else 0.0

    @property
    def takes(self) -> float:
        """Seconds until all are sent if nothing holds the retry."""
        watched = self.planned.watch_seconds if self.planned and self.tried else 0
        return watched + self.some_takes + self.rest_takes

    @property
    def below(self) -> int | None:
        """The number of ready messages below which it resumes after a hold."""
        ceiling = self.planned.hold_above if self.planned else None
        return None if ceiling is None else round(ceiling * 0.75)


def offered(connection: Connection, operation: Operation, person: Any, asked: Mapping[str, str]) -> PlanForm:
    """The plan that the address names, else the one that suits the size."""
    kept = plans.are_kept(connection)
    usual = "careful" if kept and plans.is_needed(operation) else AT_ONCE
    name = asked.get("plan", "") if asked.get("plan") in WORDS else usual
    planned = _planned(name, operation, person) if kept else None
    if planned is None:
        return PlanForm(AT_ONCE, operation, kept=kept)
    return PlanForm(name, operation, planned, written(planned))


def given(operation: Operation, posted: Mapping[str, str]) -> Planned | None:
    """The plan of a form; None for At once. Raises NotReadable."""
    if posted.get("plan", AT_ONCE) not in WORDS or posted.get("plan", AT_ONCE) == AT_ONCE:
        return None
    values: dict[str, Any] = {name: _count(name, posted) for name in _COUNTS}
    values |= {name: _rate(name, posted) for name in _RATES}
    values |= {name: _length(name, posted) for name in _LENGTHS}
    hold = posted.get("hold_above", "").strip()
    values["hold_above"] = _count("hold_above", posted) if hold else None
    values["waits"] = bool(posted.get("when") or (posted.get("waits") and not posted.get("now")))  # as the button said
    return Planned(**values)


def as_typed(form: PlanForm, posted: Mapping[str, str]) -> PlanForm:
    """The form with its input kept, if something is wrong with it."""
    name = posted.get("plan", AT_ONCE)
    if name not in WORDS or name == AT_ONCE:
        return replace(form, name=AT_ONCE, planned=None, fields={})
    typed = {each: posted.get(each, "") for each in written(Planned())}
    return replace(form, name=name, fields=typed)


def written(planned: Planned) -> dict[str, str]:
    """Each field as a person would type it."""
    said = {name: str(getattr(planned, name)) for name in _COUNTS}
    said |= {name: f"{getattr(planned, name):g} /s" for name in _RATES}
    said |= {name: durations.typed(getattr(planned, name)) for name in _LENGTHS}
    ceiling = "" if planned.hold_above is None else str(planned.hold_above)
    return {**said, "hold_above": ceiling, "waits": "yes" if planned.waits else ""}


def rate(text: str) -> float | None:
    """Messages a second out of ``20 /s``, ``20/s``, ``0.5``; None if invalid."""
    said = text.strip().removesuffix("/s").strip().replace(",", "")
    try:
        number = float(said) if len(said) <= 12 else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _planned(name: str, operation: Operation, person: Any) -> Planned | None:
    if operation.kind != Operation.Kind.RETRY or name == AT_ONCE:
        return None
    if name == "flat":
        return plans.flat(operation)
    careful = plans.careful(operation)
    last = RetryPlan.objects.filter(operation__started_by=name_of(person)).order_by("-pk").first()
    if name == "mine" and last:
        return replace(plans.of(last), hold_above=careful.hold_above, waits=True)
    return careful


def _count(name: str, posted: Mapping[str, str]) -> int:
    number = parse_int(posted.get(name, "").strip().replace(",", ""))
    if number is None:
        raise NotReadable(f"{_shown(posted, name)} is no number. Type a whole one. Nothing has started.")
    return number


def _rate(name: str, posted: Mapping[str, str]) -> float:
    number = rate(posted.get(name, ""))
    if number is None:
        raise NotReadable(f"{_shown(posted, name)} is no rate. Type messages a second, as 20. Nothing has started.")
    return number


def _length(name: str, posted: Mapping[str, str]) -> int:
    seconds = durations.parse(posted.get(name, ""), unit="s")
    if seconds is None:
        raise NotReadable(f"{_shown(posted, name)} is no duration. Try 60 s, 2 min, 1 h. Nothing has started.")
    return round(seconds)


def _shown(posted: Mapping[str, str], name: str) -> str:
    return f"“{posted.get(name, '')[:40]}”"

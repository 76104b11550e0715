"""In what steps the figures of a window are still there: fine ones are forgotten first."""

from datetime import datetime

from django.db.models import Min

from pgqueue_admin.models import Rollup
from pgqueue_admin.models.time_grains import STEPS, floor


def finest(grain: str, since: datetime, until: datetime) -> str:
    """``grain``, or the next coarser one of which nothing in the window is forgotten that still coarser ones know."""
    grains = list(STEPS)[list(STEPS).index(grain) :]
    for place, each in enumerate(grains):
        if not any(_is_forgotten(each, coarser, since, until) for coarser in grains[place + 1 :]):
            return each
    return grains[-1]


def reaches(grain: str, at: datetime) -> bool:
    """Whether there are steps of this grain from then or before: what is not found after it was not there."""
    first = _first(grain)
    return first is not None and first <= at


def _is_forgotten(finer: str, coarser: str, since: datetime, until: datetime) -> bool:
    """Whether there are coarser steps of the window from before all finer ones."""
    first = _first(finer)
    if first is not None and first <= since:
        return False
    end = min(until, floor(first, coarser)) if first else until
    return Rollup.objects.filter(grain=coarser, at__gte=floor(since, coarser), at__lt=end).exists()


def _first(grain: str) -> datetime | None:
    """At the end of its index: whether there is any before some time would be looked for in the whole table."""
    first: datetime | None = Rollup.objects.filter(grain=grain).aggregate(at=Min("at"))["at"]
    return first

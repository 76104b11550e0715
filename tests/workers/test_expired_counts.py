"""What expired is counted by queue, type and day, each once, however often a process reports (T3, T16)."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import Sum

from pgqueue_admin.records.models import Endpoint, ExpiredCount, SmallestTtbr
from pgqueue_admin.workers import ttbrs
from pgqueue_admin.workers.counters import Counters
from pgqueue_admin.workers.in_hand import Hands


@pytest.mark.usefixtures("console_database")
def test_a_type_that_no_column_takes_is_counted_too() -> None:
    """Else every later beat would fail over it, and no other type would be counted."""
    endpoint = Endpoint.objects.create(name="Sales", table="Sales")
    kinds = ["T\0x", "Shop.Quote", "half \ud800", "T" * 600]
    ttbrs.lower(endpoint, dict.fromkeys(kinds, timedelta(seconds=10)), {})
    ttbrs.lost(endpoint, dict.fromkeys(kinds, 1), {})
    kept = {"T\N{SYMBOL FOR NULL}x", "Shop.Quote", "half ?", "T" * 512}
    for counted in (SmallestTtbr, ExpiredCount):
        assert set(counted.objects.values_list("message_type", flat=True)) == kept


@pytest.mark.usefixtures("console_database")
def test_each_is_added_once(tmp_path: Path) -> None:
    endpoint = Endpoint.objects.create(name="Sales", table="Sales")
    told: list[ttbrs.Counts] = [{}, {}]
    reporting = [Counters(Hands(tmp_path / "a")), Counters(Hands(tmp_path / "b"))]
    for turn in range(3):
        for place, counters in enumerate(reporting):
            if turn < 2:
                counters.expired("Shop.Quote")
            told[place] = ttbrs.lost(endpoint, counters.lost(), told[place])
    reporting[0].expired("Shop.Mail")
    ttbrs.lost(endpoint, reporting[0].lost(), told[0])
    by_type = ExpiredCount.objects.values_list("message_type").annotate(Sum("number"))  # midnight may pass
    assert dict(by_type) == {"Shop.Quote": 4, "Shop.Mail": 1}
    assert str(ExpiredCount.objects.all()[0].queue) == "public.Sales"

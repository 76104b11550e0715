"""What expired is counted by queue, type and day, each once, however often a process reports (T3, T16)."""

from pathlib import Path

import pytest
from django.db.models import Sum

from pgqueue_admin.records.models import Endpoint, ExpiredCount
from pgqueue_admin.workers import ttbrs
from pgqueue_admin.workers.counters import Counters
from pgqueue_admin.workers.in_hand import Hands


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

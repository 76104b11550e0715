"""Batches on a busy machine: each checks the load, and is half as large if other processes need it."""

from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.models import HistoryBatch
from tests.history.tables import audit, put

ENDED = '{"NServiceBus.ProcessingEnded":"2026-11-14 12:00:00:000000 Z"}'


@pytest.mark.spark
@pytest.mark.parametrize(("is_busy", "rows"), [(True, [2, 2, 1]), (False, [4, 1])])
def test_a_batch_is_half_as_large_while_others_are_busy(
    database: Any, driver: Callable[..., BatchLoop], is_busy: bool, rows: list[int]
) -> None:
    asked = list[bool]()

    def are_others_busy() -> bool:
        asked.append(is_busy)
        return is_busy

    source = audit(database)
    for _ in range(5):
        put(database)
    database.run("update audit set headers = %(ended)s", {"ended": ENDED})
    driver(most=4, is_busy=are_others_busy).run_once()
    done = HistoryBatch.objects.filter(source=source, state="done").order_by("pk")
    assert [(batch.rows, batch.kept) for batch in done] == [(number, number) for number in rows]
    assert len(asked) >= len(rows), "small ones too: each has a minute from then on"

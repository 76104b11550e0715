"""An audit queue recreated with partitions: its numbers come from another table's sequence."""

from typing import Any

import pytest

from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import given_out
from pgqueue_admin.models import HistorySource
from tests.history.tables import audit, put, read, told

_PARTITIONED = """
alter table audit rename to audit_before;
create table audit (like audit_before including defaults) partition by range (seq);
create table audit_1 partition of audit for values from (0) to (1000);
"""


@pytest.fixture
def partitioned(database: Any) -> HistorySource:
    source = audit(database)
    database.run(_PARTITIONED)
    return source


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("alter sequence audit_seq_seq cache 20", "hands 20 numbers at once"),
        ("truncate audit; alter sequence audit_seq_seq restart", "its sequence was restarted"),
        ("truncate audit; select setval('audit_seq_seq', 1)", "its numbers began anew"),
    ],
)
def test_changed_sequence_of_a_partitioned_queue_stops_reading(
    change: str, why: str, database: Any, partitioned: HistorySource
) -> None:
    for _ in range(3):
        put(database)
    assert read(database, partitioned) == [1, 2, 3]
    partitioned.refresh_from_db()
    database.run(change)
    put(database)
    assert planning.plan_batch(database, partitioned) is None
    assert why in told(partitioned)


def test_numbers_given_out_by_the_sequence_count(database: Any, partitioned: HistorySource) -> None:
    before = given_out(database)
    put(database)
    assert given_out(database) == before + 1

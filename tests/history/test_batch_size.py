"""A batch is also limited in bytes: Spark's sort uses the disk for a while, which other processes share."""

from typing import Any

import pytest

from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.size_limits import BODY_KEPT_MOST
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import HistoryBatch, HistorySource
from tests.history.tables import audit, read

_DEAD = """
insert into messages.message_archive (created_at, message, result, handled_by, headers, body)
select now(), '{}', 'success', 'x', repeat('h', %(headers)s), convert_to(repeat('b', %(body)s), 'UTF8')
from generate_series(1, %(many)s)
"""


@pytest.fixture
def archive(database: Any) -> HistorySource:
    (found,) = sources(database)
    return found


def put(database: Any, many: int, headers: int, body: int = 0) -> None:
    database.run(_DEAD, {"many": many, "headers": headers, "body": body})


def sizes() -> list[int]:
    """Rows of each batch, in order."""
    return list(HistoryBatch.objects.order_by("pk").values_list("rows", flat=True))


def test_large_rows_make_more_batches_and_each_is_read_once(
    database: Any, archive: HistorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "BYTES", 1_000_000)
    put(database, 30, headers=100_000)
    assert read(database, archive) == list(range(1, 31))
    assert sizes() == [10, 10, 10]


def test_large_rows_behind_many_small_ones_are_batches_of_their_own(
    database: Any, archive: HistorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean of the remaining rows does not describe the last ones."""
    monkeypatch.setattr(planning, "BYTES", 1_000_000)
    put(database, 60, headers=100)
    put(database, 5, headers=900_000)
    assert read(database, archive) == list(range(1, 66))
    assert sizes()[-4:] == [1, 1, 1, 1]


def test_a_row_that_is_larger_by_itself_is_a_batch(
    database: Any, archive: HistorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "BYTES", 1_000)
    put(database, 3, headers=100_000)
    assert read(database, archive) == [1, 2, 3]
    assert sizes() == [1, 1, 1]


@pytest.mark.parametrize(
    ("bodies", "counted"), [("truncate", 4096), ("keep", BODY_KEPT_MOST), ("hash", 32), ("drop", 0)]
)
def test_batch_size_counts_the_part_of_a_body_that_is_read(
    database: Any, archive: HistorySource, settings: Any, bodies: str, counted: int
) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "HISTORY_BODIES": bodies}
    put(database, 2, headers=1_000, body=BODY_KEPT_MOST + 1)
    assert planning.by_snapshots(database, archive, 100).bytes == 2 * (1_000 + counted)


def test_headers_that_stay_there_count_as_the_largest(database: Any, archive: HistorySource) -> None:
    put(database, 1, headers=5_000_000)
    assert planning.by_snapshots(database, archive, 100).bytes == 1_000_000


def test_an_audit_queue_is_bounded_too(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = audit(database)
    monkeypatch.setattr(planning, "BYTES", 1_000_000)
    database.run(
        f"insert into {source.table} (id, headers)"
        " select gen_random_uuid(), repeat('h', 100000) from generate_series(1, 30)"
    )
    assert read(database, source) == list(range(1, 31))
    assert sizes() == [10, 10, 10]


def test_many_large_rows_of_one_number_are_one_batch(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner may have numbered them so: they cannot be divided, and a lower limit gives as many."""
    source = audit(database)
    monkeypatch.setattr(planning, "BYTES", 1_000_000)
    database.run(f"alter table {source.table} drop constraint if exists audit_seq_key")
    database.run(
        f"insert into {source.table} (id, seq, headers)"
        " select gen_random_uuid(), 7, repeat('h', 100000) from generate_series(1, 30)"
    )
    database.run(f"select setval(pg_get_serial_sequence('{source.table}', 'seq'), 7)")
    assert planning.plan_batch(database, source)
    assert sizes() == [30]

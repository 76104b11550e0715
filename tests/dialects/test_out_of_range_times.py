"""Times in foreign tables: as the driver reads them, including those beyond Python's datetime."""

import pytest
from psycopg.types.datetime import TimestamptzLoader

from pgqueue_admin.dialects.out_of_range_times import Beyond
from pgqueue_admin.dialects.postgresql.value_adapters import _Instant

INSTANT = 1184


@pytest.mark.parametrize(
    "said",
    [
        "2026-11-30 07:28:22.008996+00",
        "2026-11-30 07:28:22.1+00",
        "2026-11-30 07:28:22.00899+00",
        "2026-11-30 07:28:22+00",
        "0001-01-01 00:00:00+00",
        "9999-12-31 23:59:59.999999+00",
        "2026-11-30 07:28:22+05:30",
        "1890-01-01 00:00:00-00:01:15",
    ],
)
def test_an_instant_is_read_as_the_driver_reads_it(said: str) -> None:
    found, expected = _Instant(INSTANT).load(said.encode()), TimestamptzLoader(INSTANT).load(said.encode())
    assert (found, found.tzinfo, type(found)) == (expected, expected.tzinfo, type(expected))


@pytest.mark.parametrize("said", ["infinity", "-infinity", "0044-03-15 00:00:00+00 BC", "10000-01-01 00:00:00+00"])
def test_out_of_range_time_is_kept_as_written(said: str) -> None:
    found = _Instant(INSTANT).load(said.encode())
    assert isinstance(found, Beyond)
    assert found.isoformat() == said

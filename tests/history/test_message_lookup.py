"""Messages of history: the newest of a period and each in full, read from files by a separate process."""

from datetime import timedelta
from pathlib import Path

import pytest

from pgqueue_admin.history.rollups.queries import TrendQuery
from pgqueue_admin.history.storage import message_lookup
from pgqueue_admin.models import DataFile
from tests.history.files import HEADERS, TEN, message, write

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
HOUR = TrendQuery(TEN, TEN + timedelta(hours=1), "hour")
pytestmark = pytest.mark.usefixtures("console_database")


def test_the_newest_of_a_stretch_and_how_many_there_are(history: Path) -> None:
    write(history, *(message(n, TEN + n * SECOND) for n in range(150)), message(500, TEN - SECOND))
    write(history, message(900, HOUR.until - SECOND), message(901, HOUR.until))
    write(history, message(902, TEN + DAY), day=TEN + DAY)
    found = message_lookup.newest(HOUR, most=100)
    assert (found.matched, found.files, found.unread) == (151, 2, 0)
    assert [each.seq for each in found.newest] == [900, *range(149, 50, -1)]
    assert found.newest[0].ended_at == HOUR.until - SECOND


def test_only_what_the_manifest_names_is_history(history: Path) -> None:
    write(history, message(1)).rename(history / "v3" / "kept.parquet")
    DataFile.objects.update(path="v3/kept.parquet")
    write(history, message(2))
    DataFile.objects.exclude(path="v3/kept.parquet").delete()
    assert [each.seq for each in message_lookup.newest(HOUR).newest] == [1]


@pytest.mark.parametrize(
    ("narrowed", "result", "seqs"),
    [
        ({"endpoint": "Sales"}, "", [3, 1]),
        ({"type": "Shop.Bill"}, "", [2]),
        ({"queue": '"public"."Billing"'}, "", [2]),
        ({}, "success", [3, 1]),
        ({"endpoint": "Billing"}, "success", []),
    ],
)
def test_narrowed_as_trends_is(history: Path, narrowed: dict[str, str], result: str, seqs: list[int]) -> None:
    failed = {"endpoint": "Billing", "type": "Shop.Bill", "result": "failed", "queue": '"public"."Billing"'}
    write(history, message(1), message(2, TEN + SECOND, **failed), message(3, TEN + 2 * SECOND))
    asked = TrendQuery(HOUR.since, HOUR.until, "hour", **narrowed)
    assert [each.seq for each in message_lookup.newest(asked, result).newest] == seqs


def test_discarded_messages_are_found_only_when_asked_for(history: Path) -> None:
    write(history, message(1), message(2, result="failed"), message(3, result="discarded"))
    write(history, message(4, result="discarded"))
    found = {asked: message_lookup.newest(HOUR, asked) for asked in ("", "unsuccessful", "discarded")}
    assert {asked: sorted(each.seq for each in rows.newest) for asked, rows in found.items()} == {
        "": [1, 2], "unsuccessful": [2], "discarded": [3, 4],
    }  # fmt: skip
    assert found[""].matched == 2


def test_a_name_that_figures_cut_finds_all_that_they_count_by_it(history: Path) -> None:
    """Prefixes of other names do not: names up to 800 bytes are counted in full."""
    begin = "T" * 200
    names = [begin, begin + "a" * 601, begin + "b" * 601, begin + "a" * 600, "T" * 199 + "a" * 700, "\N{SNOWMAN}" * 300]
    write(history, *(message(seq, TEN + seq * SECOND, type=name) for seq, name in enumerate(names, 1)))
    for name, seqs in ((names[0], [3, 2, 1]), (names[1], [3, 2, 1]), (names[3], [4]), (names[5], [6])):
        asked = TrendQuery(HOUR.since, HOUR.until, "hour", type=name)
        assert [each.seq for each in message_lookup.newest(asked).newest] == seqs


@pytest.mark.parametrize("others", ["A", "Z"])
def test_a_file_of_longer_names_alone_is_not_passed_over(history: Path, others: str) -> None:
    """Its min and max statistics contain no such name, only longer ones."""
    write(history, message(1, type="T" * 900), message(2, type=("T" * 200 + others) * 5))
    assert message_lookup.newest(TrendQuery(HOUR.since, HOUR.until, "hour", type="T" * 200)).matched == 2


def test_single_message_has_its_headers_and_body(history: Path) -> None:
    write(history, message(1, TEN + SECOND), message(1, TEN), message(1, TEN, source="other"))
    found = message_lookup.one("audit", 1, TEN)
    assert found is not None
    assert (found.headers, found.body, found.why_no_body) == (HEADERS, b"hello", "")
    assert message_lookup.one("audit", 2, TEN) is None


def test_a_file_that_is_gone_or_torn_is_told(history: Path) -> None:
    path = write(history, message(1))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(message_lookup.FilesUnreadable, match="cannot be read from here"):
        message_lookup.newest(HOUR)
    path.unlink()
    with pytest.raises(message_lookup.FilesUnreadable, match="part-0"):
        message_lookup.newest(HOUR)


def test_lookup_over_the_time_limit_counts_unread_files(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(history, message(1))
    write(history, message(2))
    monkeypatch.setattr(message_lookup, "WITHIN", 0.0)
    found = message_lookup.newest(HOUR)
    assert (found.matched, found.unread) == (1, 2)  # the file read when time ran out counts as unread

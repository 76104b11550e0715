"""The files beside Trends' charts, read by ordinary readers: exactly the figures of a recount."""

import csv
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.history.rollups.queries import MEASURES
from tests.history.independent_recount import counts, times
from tests.history.independent_recount.rows import ENDS
from tests.history.independent_recount.slowest import slowest
from tests.history.independent_recount.windows import Subject, Window

_WEEK = timedelta(days=7)
_NOT_TIMED: Any = ((None, None, None), {})
Row = dict[str, str]


class Files:
    """The files of one window, shown in steps of this grain. ``plain``: figures of a recount."""

    def __init__(self, client: Client, plain: dict[Any, Any], window: Window, grain: str, subject: Subject):
        self._client, self._window, self._subject = client, window, subject
        self._counts = plain[counts]["counts", grain, subject]
        self._retried = plain[counts].get(("retried", grain, subject))
        self._times = {measure: plain[times].get((measure, grain, subject), {}) for measure in MEASURES}

    def agree(self, database: Any) -> None:
        self._shares_agree()
        for measure in MEASURES:
            self._steps_agree(measure)
            self._map_agrees(measure)
            if self._subject.what in {"", "endpoint"}:
                self._types_agree(database, measure)

    def _file(self, name: str, measure: str = "critical") -> list[Row]:
        since, until = (each.isoformat() for each in self._window)
        asked = {"since": since, "until": until, "m": measure, "format": name, self._subject.what: self._subject.name}
        found = list(csv.DictReader(self._client.get("/trends/", asked).content.decode().splitlines()))
        assert {row["known"] for row in found if "known" in row} <= {"whole"}
        return found

    def _within(self, found: dict[int, Any]) -> dict[int, Any]:
        since, until = (each.timestamp() for each in self._window)
        return {at: each for at, each in found.items() if since <= at < until}

    def _shares_agree(self) -> None:
        found = {_second(row["at"]): _numbers(row, "finished", "failed", *_SHARES) for row in self._file("share")}
        assert found == {
            at: (_finished(now), now[1], _share(now), _share(self._counts.get(_before(at))))
            for at, now in self._within(self._counts).items()
        }

    def _steps_agree(self, measure: str) -> None:
        timed, found = self._times[measure], self._file("steps", measure)
        assert {_second(row["at"]): _numbers(row, *_STEPS) for row in found} == {
            at: (
                *now[:2], *_rounded(timed.get(at, _NOT_TIMED)[0]), *self._counts.get(_before(at), (None, None))[:2],
                *_rounded(timed.get(_before(at), _NOT_TIMED)[0][1:2]),
                None if self._retried is None else self._retried.get(at, 0),
            )
            for at, now in self._within(self._counts).items()
        }  # fmt: skip

    def _map_agrees(self, measure: str) -> None:
        """Steps in the same column are summed."""
        found = self._file("heat", measure)
        columns = {(row["at"], row["until"]) for row in found}
        wanted: Counter[Any] = Counter()
        for at, (_, cells) in self._within(self._times[measure]).items():
            (column,) = (each for each in columns if _second(each[0]) <= at < _second(each[1]))
            for band, number in cells.items():
                wanted[*column, *_ENDS[band]] += number
        assert wanted == {
            (row["at"], row["until"], *_numbers(row, "over_ms", "upto_ms")): int(row["messages"]) for row in found
        }

    def _types_agree(self, database: Any, measure: str) -> None:
        since, until = self._window
        weeks = -(-(until - since) // _WEEK)
        wanted = slowest(database, measure, self._window, weeks * _WEEK, self._subject)
        assert [(row["type"], *_numbers(row, *_TYPES)) for row in self._file("types", measure)] == [
            (type_, messages, *_rounded((p50, p95, before)), weeks) for type_, messages, p50, p95, before in wanted
        ]


_SHARES = ("per_cent_failed", "per_cent_failed_week_before")
_STEPS = (
    "succeeded", "failed", "p50_ms", "p95_ms", "p99_ms", "succeeded_week_before", "failed_week_before",
    "p95_ms_week_before", "retried",
)  # fmt: skip
_TYPES = ("timed", "p50_ms", "p95_ms", "p95_ms_before", "weeks_before")
_ENDS = dict(enumerate(zip([0, *ENDS], [*ENDS, None], strict=True)))


def _second(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp())


def _before(at: int) -> int:
    return at - int(_WEEK.total_seconds())


def _numbers(row: Row, *names: str) -> tuple[float | None, ...]:
    return tuple(float(row[name]) if row[name] else None for name in names)


def _rounded(cuts: Any) -> list[Any]:
    """Within one per cent, then rounded to a tenth of a millisecond."""
    return [None if cut is None else _to_a_tenth(cut.expected) for cut in cuts]


def _to_a_tenth(milliseconds: float) -> Any:
    return pytest.approx(milliseconds, abs=0.0101 * milliseconds + 0.05)


def _finished(found: Any) -> int | None:
    return None if found[0] is None else found[0] + found[1]


def _share(found: Any) -> Any:
    return pytest.approx(100 * found[1] / _finished(found), rel=1e-5) if found and _finished(found) else None

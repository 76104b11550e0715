"""Which parts of a benchmark run, in which order, and what happens to the others if one fails."""

import json
from pathlib import Path

import pytest

from bench import table
from bench.parts import Part, measure
from bench.table import Row, measured_in, row


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    return tmp_path / "room.json"


def part(name: str, ran: list[str]) -> Part:
    def measured() -> list[Row]:
        ran.append(name)
        if name == "broken":
            raise SystemExit("no")
        return [row(name, 1.0, "ms", floor=None, target=2)]

    return measured


def run(wanted: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    ran: list[str] = []
    monkeypatch.setenv("PARTS", wanted)
    measure("room", {name: part(name, ran) for name in ("first", "broken", "last")})
    return ran


def test_parts_run_in_their_own_order(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("last,first", monkeypatch) == ["first", "last"]


def test_failing_part_is_reported_and_others_run(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("first,broken,last", monkeypatch) == ["first", "broken", "last"]
    assert "Not measured: broken" in capsys.readouterr().err
    assert {each["name"] for each in json.loads(results.read_text())} == {"first", "last"}


def test_each_row_says_when_and_with_what_it_was_measured(results: Path) -> None:
    """Rows of several runs are kept side by side; older rows without these fields stay unchanged."""
    old = {"name": "old", "value": 1, "unit": "ms", "floor": None, "ratio": None, "target": 2, "part": "first"}
    results.write_text(json.dumps([old]))
    table.publish("room", measured_in(3, 500, part("new", [])()), "second")
    kept, new = json.loads(results.read_text())
    assert kept == old
    assert (new["rounds"], new["rows"], new["part"]) == (3, 500, "second")
    assert new["load"] >= 0
    assert {name: new[name] for name in ("date", "processors")} == table.circumstances()


def test_a_part_that_is_none_is_refused_with_those_that_are(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="PARTS names frist; there are first, broken, last"):
        run("frist", monkeypatch)

"""The conclusions of the evidence page match bench/results; its figures are generated from there."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/evidence/README.md").read_text(encoding="utf-8")
COMPARED = ("rollups", "histograms", "failures", "retry outcomes")


def results(name: str) -> Any:
    return json.loads((ROOT / f"bench/results/{name}.json").read_text(encoding="utf-8"))


def test_missed_targets_of_rates_are_named() -> None:
    """Across all results. A rate's target is a ratio to another rate."""
    found = [results(path.stem) for path in (ROOT / "bench/results").glob("*.json")]
    rows = [row for each in found if isinstance(each, list) for row in each if row.get("unit") == "/s"]
    assert len(rows) > 10
    missed = {row["name"] for row in rows if row["target"] and row["ratio"] < row["target"]}
    assert set(re.findall(r"^- (.*)$", PAGE.partition("## Missed")[2].partition("\n## ")[0], re.MULTILINE)) == missed


def test_only_mode_none_loses_messages_under_kills() -> None:
    assert "nothing is lost but in mode `none`; `receive_only` sends again" in PAGE
    runs = results("chaos")
    assert {run["mode"] for run in runs if run["lost"] or run["dead"]} == {"none"}
    assert {run["mode"] for run in runs if run["sent_again"]} == {"receive_only"}


def test_history_kills_lose_and_double_nothing() -> None:
    """Not vacuously: drivers were killed at each point, and figures were compared."""
    run = results("history_chaos")
    assert run["killed at a point"] == run["points"] > 0
    assert all(run[name] for name in COMPARED)
    assert [run[name] for name in ("lost", "twice", "never committed", *(f"wrong {name}" for name in COMPARED))] == [
        0
    ] * 7


def test_each_result_is_of_a_benchmark_that_says_how_it_measures() -> None:
    for path in (ROOT / "bench/results").glob("*.json"):
        assert (ROOT / f"bench/{path.stem}.py").read_text(encoding="utf-8").startswith('"""')

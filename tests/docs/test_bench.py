"""Figures that a page copies from bench/results are those that lie there."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENGINE = (ROOT / "docs/evidence/engine.md").read_text(encoding="utf-8")
HEAD = "| mode | lost | dead | handled again | sent again |"
FIGURES = {  # and what the page calls them
    "rollups": "rollups",
    "histograms": "buckets of histograms",
    "failures": "failures of a minute",
    "stories": "retry outcomes",
}
COUNTED = ("lost", "dead", "handled_again", "sent_again")


def test_the_table_of_chaos_is_its_last_run() -> None:
    runs = json.loads((ROOT / "bench/results/chaos.json").read_text(encoding="utf-8"))
    table = re.search(rf"^{re.escape(HEAD)}\n.*\n((?:\|.*\n)+)", ENGINE, re.MULTILINE)
    assert table is not None
    assert table[1].splitlines() == [row(run) for run in runs]


def test_the_table_of_pages_is_the_last_run_of_the_console_s() -> None:
    measured = {each["name"]: each for each in json.loads((ROOT / "bench/results/console.json").read_text("utf-8"))}
    said = (ROOT / "docs/evidence/console.md").read_text(encoding="utf-8")
    for page in ("Overview", "Queues", "Queue, 1,000,000 rows"):
        plain, dead = measured[f"{page}, p95"], measured[f"{page}, 600,000 dead rows held at its head, p95"]
        assert f"| {page} | {plain['value']:.0f} | {dead['value']:.0f} | {plain['target']} |" in said
    plain, dead = (measured[f"sampling 200 queues, of one core{rest}"] for rest in ("", ", with the dead rows"))
    sampler = f"takes {plain['value']:.1f} % of one core for it, {dead['value']:.1f} % with the dead rows"
    assert f"{sampler} ({plain['target']} % wanted)" in said


def test_what_kills_cost_is_what_its_last_run_found() -> None:
    """All that can be wrong is none, and the page says of how much."""
    run = json.loads((ROOT / "bench/results/history_chaos.json").read_text("utf-8"))
    said = " ".join((ROOT / "docs/evidence/history.md").read_text(encoding="utf-8").split())
    kills = f"{run['killed']} kills of drivers, among them at each of the {run['points']} points"
    assert f"{kills}, {run['restarts']} restarts of the server, {run['committed']:,} messages committed" in said
    compared = ", ".join(f"{run[name]:,} {told}" for name, told in FIGURES.items())
    assert f"none lost, none twice, none that was rolled back; {compared} compared, none wrong" in said
    wrong = [run[f"wrong {name}"] for name in FIGURES]
    assert [run["lost"], run["twice"], run["never committed"], *wrong] == [0] * 7


# by how its row begins, what the page says of it
SPEED = {
    "reading in Spark": "COPY of {floor} rows/s | {ratio:.2f}, {value} rows/s: missed",
    "a backlog of 500,000 rows": "| {ratio:.3f}, {value} rows/s: missed",
    "time for a row of 500,000": "against one of 250,000, by turns | {percent} %",
    "six columns read in Spark": "COPY of {floor} rows/s | {ratio:.2f}, {value} rows/s",
    "ready batches handed to Spark": "a COPY of {floor} rows/s | {ratio:.2f}, {value} rows/s",
    "Spark alone": "a COPY of {floor} rows/s | {ratio:.3f}, {value} rows/s",
    "figures by plain SQL": "by Spark over the files | {value}; ",
    "figures by DuckDB": "; {value}; {floor} rows/s",
    "Trends, 90 days of one queue, p95": "where /healthz takes {floor_ms:.1f} ms | {percent} ms",
    "most behind in 120 s": "in 120 s of 500 messages a second | {percent} s",
    "the least that receivers handled": "offered while a batch runs | {tenths}",
    "50,000 rows beside 10,000,000": "| {percent} % | 110 %",
}


def test_how_fast_history_is_is_what_its_last_runs_found() -> None:
    measured = json.loads((ROOT / "bench/results/history.json").read_text("utf-8"))
    page = (ROOT / "docs/evidence/history.md").read_text(encoding="utf-8")
    said = page[page.index("What two cores gave that server") :]
    for begin, words in SPEED.items():
        (found,) = (each for each in measured if each["name"].startswith(begin))
        assert words.format(**told(found)) in said


def told(found: dict[str, Any]) -> dict[str, Any]:
    """Rates to three digits."""
    rates = {name: f"{float(f'{found[name] or 0:.3g}'):,.0f}" for name in ("value", "floor")}
    plain = {"percent": f"{found['value']:.0f}", "tenths": f"{found['value']:.1f}", "floor_ms": found["floor"] or 0}
    return {**rates, **plain, "ratio": found["ratio"] or 0}


def row(run: dict[str, int | str]) -> str:
    batches = f"the same, in batches of {run['batch_size']}"
    cells = [f"`{run['mode']}`" if run["batch_size"] == 1 else batches, *(f"{run[name]:,}" for name in COUNTED)]
    return f"| {' | '.join(cells)} |"

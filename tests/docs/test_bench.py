"""Figures that a page copies from bench/results are those that lie there."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGINE = (ROOT / "docs/engine.md").read_text(encoding="utf-8")
HEAD = "| mode | lost | dead | handled again | sent again |"
COUNTED = ("lost", "dead", "handled_again", "sent_again")


def test_the_table_of_chaos_is_its_last_run() -> None:
    runs = json.loads((ROOT / "bench/results/chaos.json").read_text(encoding="utf-8"))
    table = re.search(rf"^{re.escape(HEAD)}\n.*\n((?:\|.*\n)+)", ENGINE, re.MULTILINE)
    assert table is not None
    assert table[1].splitlines() == [row(run) for run in runs]


def test_the_table_of_pages_is_the_last_run_of_the_console_s() -> None:
    measured = {each["name"]: each for each in json.loads((ROOT / "bench/results/console.json").read_text("utf-8"))}
    said = (ROOT / "docs/console.md").read_text(encoding="utf-8")
    for page in ("Overview", "Queues", "Queue, 1,000,000 rows"):
        plain, dead = measured[f"{page}, p95"], measured[f"{page}, 600,000 dead rows held at its head, p95"]
        assert f"| {page} | {plain['value']:.0f} | {dead['value']:.0f} | {plain['target']} |" in said
    plain, dead = (measured[f"sampling 200 queues, of one core{rest}"] for rest in ("", ", with the dead rows"))
    sampler = f"takes {plain['value']:.1f} % of one core for it, {dead['value']:.1f} % with the dead rows"
    assert f"{sampler} ({plain['target']} % wanted)" in said


def row(run: dict[str, int | str]) -> str:
    batches = f"the same, in batches of {run['batch_size']}"
    cells = [f"`{run['mode']}`" if run["batch_size"] == 1 else batches, *(f"{run[name]:,}" for name in COUNTED)]
    return f"| {' | '.join(cells)} |"

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


def row(run: dict[str, int | str]) -> str:
    batches = f"the same, in batches of {run['batch_size']}"
    cells = [f"`{run['mode']}`" if run["batch_size"] == 1 else batches, *(f"{run[name]:,}" for name in COUNTED)]
    return f"| {' | '.join(cells)} |"

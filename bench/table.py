"""The table that a benchmark prints and the JSON that it writes to bench/results/."""

import json
import os
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
# units whose target applies to the value; every other target applies to the ratio
LOWER_IS_BETTER = {"ms", "s", "MB", "%", "statements"}


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str
    floor: float | None
    ratio: float | None
    target: float
    part: str = ""
    date: str = ""
    processors: int | None = None
    rounds: int | None = None
    rows: int | None = None
    load: float | None = None  # mean number of runnable processes over a minute, ours included

    @property
    def met(self) -> bool:
        if self.unit in LOWER_IS_BETTER:
            return self.value <= self.target
        return self.ratio is not None and self.ratio >= self.target


def row(name: str, value: float, unit: str, *, floor: float | None, target: float) -> Row:
    ratio = round(value / floor, 3) if floor else None
    return Row(name, round(value, 3), unit, None if floor is None else round(floor, 3), ratio, target)


def measured_in(rounds: int, of: int | None, rows: list[Row]) -> list[Row]:
    """``of``: number of table rows or messages in each round."""
    return [replace(each, rounds=rounds, rows=of) for each in rows]


def circumstances() -> dict[str, Any]:
    """Date and number of processors: figures of two runs are comparable only where these are known."""
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "processors": len(os.sched_getaffinity(0))}


def publish(room: str, rows: list[Row], part: str = "") -> None:
    """Print the table; write bench/results/<room>.json, where rows of other parts stay unchanged."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{room}.json"
    known = json.loads(path.read_text()) if part and path.exists() else []
    kept = [each for each in known if each.get("part") not in (None, part)]
    load = round(os.getloadavg()[0], 1)
    kept += [asdict(replace(each, part=part, load=load, **circumstances())) for each in rows]
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{'measure':58} {'value':>10} {'unit':10} {'floor':>10} {'ratio':>7} {'target':>7}")
    for r in rows:
        print(
            f"{r.name:58} {r.value:>10} {r.unit:10} {dash(r.floor):>10} {dash(r.ratio):>7} {r.target:>7}"
            f"{'' if r.met else '  MISSED'}"
        )


def dash(figure: float | None) -> str:
    return "–" if figure is None else str(figure)

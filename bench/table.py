"""The table a bench prints and the JSON it leaves in bench/results/."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
# units whose target is of the value; every other target is of the ratio
LOWER_IS_BETTER = {"ms", "s", "MB", "%", "statements"}


@dataclass(frozen=True)
class Row:
    name: str
    value: float
    unit: str
    floor: float | None
    ratio: float | None
    target: float

    @property
    def met(self) -> bool:
        if self.unit in LOWER_IS_BETTER:
            return self.value <= self.target
        return self.ratio is not None and self.ratio >= self.target


def row(name: str, value: float, unit: str, *, floor: float | None, target: float) -> Row:
    ratio = round(value / floor, 3) if floor else None
    return Row(name, round(value, 3), unit, None if floor is None else round(floor, 3), ratio, target)


def publish(room: str, rows: list[Row]) -> None:
    """Print the table; write bench/results/<room>.json."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{room}.json").write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n")
    print(f"{'measure':58} {'value':>10} {'unit':10} {'floor':>10} {'ratio':>7} {'target':>7}")
    for r in rows:
        print(
            f"{r.name:58} {r.value:>10} {r.unit:10} {dash(r.floor):>10} {dash(r.ratio):>7} {r.target:>7}"
            f"{'' if r.met else '  MISSED'}"
        )


def dash(figure: float | None) -> str:
    return "–" if figure is None else str(figure)

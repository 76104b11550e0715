"""The table a bench prints and the JSON it leaves in bench/results/."""

import json
from dataclasses import asdict, dataclass, replace
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
    part: str = ""

    @property
    def met(self) -> bool:
        if self.unit in LOWER_IS_BETTER:
            return self.value <= self.target
        return self.ratio is not None and self.ratio >= self.target


def row(name: str, value: float, unit: str, *, floor: float | None, target: float) -> Row:
    ratio = round(value / floor, 3) if floor else None
    return Row(name, round(value, 3), unit, None if floor is None else round(floor, 3), ratio, target)


def publish(room: str, rows: list[Row], part: str = "") -> None:
    """Print the table; write bench/results/<room>.json, where rows of other parts stay as they are."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{room}.json"
    known = json.loads(path.read_text()) if part and path.exists() else []
    kept = [each for each in known if each.get("part") not in (None, part)]
    kept += [asdict(replace(each, part=part)) for each in rows]
    path.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{'measure':58} {'value':>10} {'unit':10} {'floor':>10} {'ratio':>7} {'target':>7}")
    for r in rows:
        print(
            f"{r.name:58} {r.value:>10} {r.unit:10} {dash(r.floor):>10} {dash(r.ratio):>7} {r.target:>7}"
            f"{'' if r.met else '  MISSED'}"
        )


def dash(figure: float | None) -> str:
    return "–" if figure is None else str(figure)

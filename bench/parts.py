"""The parts of a benchmark: ``PARTS`` selects some of them, and the results of all others stay unchanged."""

import os
import sys
import traceback
from collections.abc import Callable

from bench.table import Row, publish

Part = Callable[[], list[Row]]


def measure(room: str, parts: dict[str, Part]) -> None:
    """Run in the order of ``parts``, not of PARTS: a part may leave rows that the next one reads."""
    wanted = os.environ.get("PARTS", ",".join(parts)).split(",")
    if unknown := set(wanted) - set(parts):
        raise SystemExit(f"PARTS names {', '.join(sorted(unknown))}; there are {', '.join(parts)}.")
    for name in parts:
        if name in wanted:
            publish(room, measured(name, parts[name]), name)


def measured(name: str, part: Part) -> list[Row]:
    """Run one part; print a failure and go on with the others."""
    try:
        return part()
    except (Exception, SystemExit):
        traceback.print_exc()
        print(f"Not measured: {name}", file=sys.stderr)
        return []

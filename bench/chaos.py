"""20,000 messages per mode; processes are killed, connections cut and the server restarted; ``make bench-chaos``.

``MESSAGES`` in the environment makes it shorter. The printed figures are in bench/results/chaos.json.
"""

import json
import os
import tempfile
from pathlib import Path

from bench.chaos_world import Outcome, world
from bench.table import RESULTS

MESSAGES = int(os.environ.get("MESSAGES", 20_000))
PROCESSES = 3
DISTURBANCES = ["kill", "cut", "kill", "restart", "kill", "cut", "kill", "kill", "cut", "restart", "kill", "cut"] * 2
STEP = 400  # least number of messages between two disturbances: more than can be in flight
RUNS = [("sends_atomic_with_receive", 1), ("sends_atomic_with_receive", 20), ("receive_only", 1), ("none", 1)]


def main() -> None:
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="pgqueue-chaos-") as name:
        Path(name).chmod(0o755)
        for number, (mode, batch_size) in enumerate(RUNS):
            folder = Path(name) / str(number)
            folder.mkdir()
            with world(folder) as made:
                disturbances = DISTURBANCES[: max(1, MESSAGES // STEP - 1)]
                outcomes.append((batch_size, made.run(mode, MESSAGES, disturbances, PROCESSES, batch_size)))
    publish(outcomes)


def publish(outcomes: list[tuple[int, Outcome]]) -> None:
    """Print the table; write bench/results/chaos.json. Exit with 1 if a mode broke its promise."""
    RESULTS.mkdir(exist_ok=True)
    found = [{"batch_size": size, **outcome._asdict(), "is_kept": outcome.is_kept} for size, outcome in outcomes]
    (RESULTS / "chaos.json").write_text(json.dumps(found, indent=1) + "\n")
    heads = ("mode", "batch", "messages", "s", "kills", "cuts", "restarts", "lost", "dead", "again", "sent again")
    print("{:26} {:>5} {:>8} {:>6} {:>5} {:>4} {:>8} {:>5} {:>5} {:>6} {:>10}".format(*heads))
    for size, outcome in outcomes:
        row = (outcome.mode, size, *outcome[1:])
        print("{:26} {:>5} {:>8} {:>6} {:>5} {:>4} {:>8} {:>5} {:>5} {:>6} {:>10}".format(*row), end="")
        print("" if outcome.is_kept else "  BROKEN")
    if not all(outcome.is_kept for _, outcome in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Prints the tests of what differs from a commit: the one named, else where origin/main was left, else HEAD.

A changed room is answered by its own tests: .ci/run asks those of the rooms above, too.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {  # what has its tests elsewhere
    ".ci": "architecture", "bench": "docs", "config": "architecture", "deploy": "architecture",
    "migrations": "models", "osproc": "embedded", "static": "console", "templates": "console",
}  # fmt: skip


def base() -> str:
    if len(sys.argv) > 1:
        return sys.argv[1]
    has_origin = subprocess.run(["git", "rev-parse", "-q", "--verify", "origin/main"], cwd=ROOT, capture_output=True)
    return git("merge-base", "origin/main", "HEAD")[0] if has_origin.returncode == 0 else "HEAD"


def changed(base: str) -> list[str]:
    return [*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")]


def git(*command: str) -> list[str]:
    return subprocess.check_output(["git", *command], cwd=ROOT, text=True).splitlines()


def tests_of(path: str) -> str | None:
    """None where no test is about it."""
    parts = path.split("/")
    if parts[0] == "tests":
        is_file = parts[-1].startswith("test_") and (ROOT / path).exists()
        return path if is_file else room(parts[1]) if len(parts) > 2 else None
    name = parts[1] if parts[0] == "pgqueue_admin" and len(parts) > 2 else parts[0]
    return room(ROOMS.get(name, name))


def room(name: str) -> str | None:
    return f"tests/{name}" if name != "journeys" and any((ROOT / "tests" / name).glob("test_*.py")) else None


def main() -> None:
    found = sorted({tests for path in changed(base()) if (tests := tests_of(path))})
    print(" ".join(each for each in found if each.rpartition("/")[0] not in found))


if __name__ == "__main__":
    main()

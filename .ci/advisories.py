#!/usr/bin/env python3
"""Known faults of what is pinned, by pip-audit in the index's advisories; to get no answer is no failure.

Ends with 1 for an advisory, or when pip-audit itself fails; with 0 and a sentence where no advisories could be had.
"""

import json
import subprocess
import sys
from typing import Any

SECONDS = 180  # for all; one question has 5
LOCK = "requirements-dev.lock"  # has all that the other locks have
OPTIONS = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--timeout", "5", "--format", "json")
UNANSWERED = ("ConnectionError", "Connection refused", "Max retries exceeded", "timed out", "ServiceError", "HTTPError")


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", *OPTIONS, "--requirement", LOCK]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return unreachable(f"no answer within {SECONDS} s")
    if not done.stdout.strip():
        words = done.stderr.strip().splitlines() or [f"pip-audit ended with {done.returncode}"]
        if any(word in done.stderr for word in UNANSWERED):
            return unreachable(words[-1][:200])
        sys.exit(done.stderr)
    return judged(json.loads(done.stdout)["dependencies"])


def judged(dependencies: list[dict[str, Any]]) -> int:
    """An index that does not know a package, as a mirror without advisories does, leaves it out with a reason."""
    asked = [each for each in dependencies if "vulns" in each]
    if not asked:
        return unreachable("the index has no advisories")
    found = [(each, fault) for each in asked for fault in each["vulns"]]
    for each, fault in found:
        mended = ", ".join(fault["fix_versions"]) or "no release yet"
        print(f"{each['name']} {each['version']}: {fault['id']}, mended in {mended}")
    unknown = len(dependencies) - len(asked)
    print(f"{len(asked)} packages asked for, {len(found)} advisories, {unknown} without an answer.")
    return 1 if found else 0


def unreachable(why: str) -> int:
    print(f"The database of advisories cannot be reached here ({why}): nothing was compared. Passed without an answer.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

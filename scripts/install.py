"""``pip install`` for the Makefile, with whatever arguments: says in a sentence when no index answers.

pip itself then says "no matching distribution", or "conflicting dependencies"; its warnings of the retries before tell
why. Needs the standard library alone: nothing is installed yet.
"""

import re
import subprocess
import sys

BROKEN = re.compile(r"after connection broken by '(.*)': ")  # pip's words since Python 3.11's, on stderr
IN_VAIN = re.compile(
    r"^ERROR: (No matching distribution|ResolutionImpossible|Could not install .* OSError)", re.MULTILINE
)
REASONS = (r"\[Errno -?\d+\] ([^'\")\]]+)", r"(timed out)", r"(certificate verify failed)", r"(\w+Error)")  # best first


def main(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    pip = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace")
    said, broken = [], ""
    for line in pip.stderr.splitlines(keepends=True):
        if found := BROKEN.search(line):
            broken = found[1]
        else:
            said.append(line)
    if pip.returncode and broken and IN_VAIN.search("".join(said)):
        print(unreachable(broken), file=sys.stderr)
    else:
        sys.stderr.writelines(said)
    return pip.returncode


def unreachable(broken: str) -> str:
    reason = next((found[1] for each in REASONS if (found := re.search(each, broken))), broken)
    return (
        f"The package index cannot be reached ({reason}): the first start needs the network; later ones do not. "
        "`pip config list` shows which index is asked."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

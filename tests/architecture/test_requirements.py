"""Every dependency is pinned, locked with file hashes, and has a documented reason."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pgqueue_admin.history.runtime.installation import PARTS

ROOT = Path(__file__).resolve().parent.parent.parent


def required(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    asked = [line for line in lines if line and not line.startswith(("#", "-"))]
    pinned = [re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[.*\])?==(\S+)", line) for line in asked]
    assert all(pinned), [line for line, pin in zip(asked, pinned, strict=True) if not pin]
    return {normal(pin[1]): pin[2] for pin in pinned if pin}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def hashed(name: str) -> dict[str, str]:
    """The versions of a lock; each needs the SHA-256 of at least one file."""
    blocks = re.split(r"(?m)^(?=\S)", (ROOT / name).read_text(encoding="utf-8"))
    pins = [block for block in blocks if block and not block.startswith("#")]
    found = [
        re.match(r"([A-Za-z0-9_.-]+)(?:\[.*\])?==(\S+)(?: ; .*)? \\\n    --hash=sha256:[0-9a-f]{64}\b", pin)
        for pin in pins
    ]
    assert all(found), [pin for pin, match in zip(pins, found, strict=True) if not match]
    return {normal(match[1]): match[2] for match in found if match}


ASKED = [
    "requirements.txt",
    "requirements-embedded.txt",
    "requirements-history.txt",
    "requirements-mysql.txt",
    "requirements-sqlserver.txt",
    "requirements-dev.txt",
]


@pytest.mark.parametrize("name", ASKED)
def test_every_requirement_is_locked_at_its_version_with_hashes(name: str) -> None:
    pinned, locked = required("constraints.txt"), hashed(name.replace(".txt", ".lock"))
    assert required(name).items() <= pinned.items()
    assert required(name).items() <= locked.items()
    assert locked.items() <= pinned.items(), "run scripts/lock.sh after a change of a pin"


def test_every_pin_has_its_hashes() -> None:
    assert hashed("requirements-dev.lock") == required("constraints.txt")
    assert {each.stem for each in ROOT.glob("*.lock")} == {Path(name).stem for name in ASKED}


@pytest.mark.parametrize("name", ["Makefile", "deploy/Dockerfile", "pgqueue_admin/history/runtime/installation.py"])
def test_every_installation_requires_hashes(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert "--require-hashes" in text
    assert not re.search(r"requirements\S*\.txt|constraints\.txt", text)


def test_no_index_is_said_in_one_sentence(tmp_path: Path) -> None:
    """Runs the Makefile's own rule, as `make run` does, against an index where nothing listens."""
    for name in ("Makefile", "scripts/install.py", "requirements.lock", "requirements-embedded.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    nobody = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "1"}
    asked = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "MAKE"))} | nobody
    made = subprocess.run(
        ["make", "run", f"PYTHON={sys.base_prefix}/bin/python3"],
        cwd=tmp_path,
        env=asked,
        capture_output=True,
        text=True,
    )
    assert made.returncode != 0
    words, *rest = made.stderr.splitlines()
    assert words.startswith(
        "The package index cannot be reached (Connection refused): "
        "the first start needs the network; later ones do not."
    )
    assert len(rest) == 1, "make's own line of the rule that failed"


def test_other_pip_failure_keeps_pips_words(tmp_path: Path) -> None:
    (tmp_path / "wrong.lock").write_text("no such requirement\n", "utf-8")
    command = [sys.executable, str(ROOT / "scripts/install.py"), "-r", str(tmp_path / "wrong.lock")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "Invalid requirement" in done.stderr
    assert "index cannot be reached" not in done.stderr


def test_every_requirement_has_its_reason_and_no_reason_is_left_over() -> None:
    rows = re.findall(
        r"^- `([^`]+)`: (\S.*)$", (ROOT / "docs/reference/dependencies.md").read_text("utf-8"), re.MULTILINE
    )
    reasons = {normal(name) for name, _ in rows}
    assert reasons == set().union(*map(required, ASKED), builds_the_wheel())


def builds_the_wheel() -> set[str]:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert all(re.fullmatch(r"[a-z-]+==[0-9.]+", each) for each in asked)
    return {normal(each.partition("==")[0]) for each in asked}


def test_the_console_comes_up_before_anything_of_history_is_installed() -> None:
    """`make run` installs the product and its servers first; the history process installs the rest."""
    said = subprocess.run(["make", "--dry-run", "--always-make", "run"], cwd=ROOT, capture_output=True, text=True)
    (installed,) = re.findall(r"install\.py (.*)", said.stdout)
    assert re.findall(r"-r (\S+)", installed) == ["requirements.lock", "requirements-embedded.lock"]
    of_history = {normal(part) for part in PARTS}
    assert of_history <= hashed("requirements-history.lock").keys()
    assert not of_history & (hashed("requirements.lock") | hashed("requirements-embedded.lock")).keys()

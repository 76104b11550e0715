"""Everything the product stands on is pinned, locked, and has a reason."""

import re
from pathlib import Path

import pytest

from pgqueue_admin.pipeline.runtime.installing import PARTS

ROOT = Path(__file__).resolve().parent.parent.parent


def required(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    asked = [line for line in lines if line and not line.startswith(("#", "-"))]
    pinned = [re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[.*\])?==(\S+)", line) for line in asked]
    assert all(pinned), [line for line, pin in zip(asked, pinned, strict=True) if not pin]
    return {normal(pin[1]): pin[2] for pin in pinned if pin}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_requirement_is_locked_at_its_version(name: str) -> None:
    locked = required("constraints.txt")
    assert required(name).items() <= locked.items()


def test_every_requirement_has_its_reason_and_no_reason_is_left_over() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (\S.*) \|$", (ROOT / "docs/dependencies.md").read_text("utf-8"), re.MULTILINE)
    reasons = {normal(name) for name, _ in rows}
    assert reasons == set(required("requirements.txt") | required("requirements-dev.txt"))


def test_the_console_comes_up_before_anything_of_history_is_installed() -> None:
    """``make run`` installs what stands before a line of requirements.txt, and the pipeline's process the rest."""
    assert "sed '/^# History/,$$d' requirements.txt" in (ROOT / "Makefile").read_text("utf-8")
    first, line, rest = (ROOT / "requirements.txt").read_text("utf-8").partition("\n# History")
    assert line
    of_history = {normal(part) for part in PARTS}
    named = [
        {normal(each) for each in re.findall(r"^[A-Za-z0-9_.-]+(?==)", part, re.MULTILINE)} for part in (first, rest)
    ]
    assert not of_history & named[0]
    assert of_history <= named[1]

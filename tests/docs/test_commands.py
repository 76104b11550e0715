"""Every argument of our commands has a help text, and CONTRIBUTING explains every make target."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
OURS = [name for name, app in get_commands().items() if str(app).startswith("pgqueue_admin")]


@pytest.mark.parametrize("name", OURS)
def test_every_command_says_what_it_does(name: str) -> None:
    told = PAGE.partition(f"\n## manage.py {name}\n\n")[2]
    assert told[:1].isupper()


def test_every_argument_is_explained() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) > 20
    assert [name for name, why in rows if not why.rstrip().endswith(".")] == []


def test_every_make_target_is_named() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = re.findall(r"`make ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert set(targets) == set(named)

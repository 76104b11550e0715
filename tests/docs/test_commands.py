"""The page of the command line names every command of ours, every argument that it takes, and every make target."""

import re
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/cli.md").read_text(encoding="utf-8")
OURS = {name: app for name, app in get_commands().items() if str(app).startswith("pgqueue_admin")}
DJANGO_S = {"migrate"}  # ours only refuses more


def options(parser: ArgumentParser) -> set[str]:
    """Those of a command of ours, and of its verbs; Django's own are every command's."""
    found = {name for action in parser._actions for name in action.option_strings if name.startswith("--")}
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            found |= {name for each in action.choices.values() for name in options(each)}
    return found


def parser_of(name: str) -> ArgumentParser:
    return load_command_class(str(OURS[name]), name).create_parser("manage.py", name)


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_named(name: str) -> None:
    assert re.search(rf"manage\.py {name}\b", PAGE)


@pytest.mark.parametrize("name", sorted(OURS.keys() - DJANGO_S))
def test_every_argument_is_explained(name: str) -> None:
    every_command_s = options(load_command_class("django.core", "check").create_parser("manage.py", "check"))
    asked = options(parser_of(name)) - every_command_s - {"--skip-checks"}
    assert {each for each in asked if not re.search(rf"{each}\b", PAGE)} == set()


def test_every_make_target_is_named() -> None:
    makefile = (Path(__file__).resolve().parents[2] / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert targets == set(re.findall(r"`make ([a-z-]+)", PAGE))

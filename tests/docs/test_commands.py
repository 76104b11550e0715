"""Every command of ours is named in a page, and so are the arguments that it takes."""

import re
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
OURS = {name: app for name, app in get_commands().items() if str(app).startswith("pgqueue_admin")}
EXPLAINED = {"dead": "archive.md", "endpoint": "workers.md"}


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
    assert any(re.search(rf"manage\.py {name}\b", page) for page in PAGES.values())


@pytest.mark.parametrize(("name", "page"), EXPLAINED.items())
def test_every_argument_is_explained(name: str, page: str) -> None:
    every_command_s = options(load_command_class("django.core", "check").create_parser("manage.py", "check"))
    asked = options(parser_of(name)) - every_command_s
    assert {each for each in asked if f"{each}`" not in PAGES[page] and f" {each} " not in PAGES[page]} == set()

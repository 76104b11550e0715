"""The documented tables, NOTIFY channels and addresses are exactly those that exist."""

import re
from pathlib import Path

from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import notify

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference"
SCHEMA = (REFERENCE / "database-schema.md").read_text(encoding="utf-8")
CONSOLE = (REFERENCE / "console-tables.md").read_text(encoding="utf-8")


def test_tables_of_the_engine_are_those_of_its_schema() -> None:
    made = "\n".join(statement.text for statement in postgresql().schema)
    there = set(re.findall(r"create (?:table|view) (?:if not exists )?(messages\.\w+)", made))
    assert set(re.findall(r"^- `(messages\.\w+)`:", SCHEMA, re.MULTILINE)) == there


def test_columns_of_the_engine_are_documented() -> None:
    made = "\n".join(statement.text for statement in postgresql().schema)
    added = set(re.findall(r"add column (?:if not exists )?(\w+)", made))
    section = SCHEMA.partition("### `messages.message`")[2].partition("\n## ")[0]
    named = {name for row in re.findall(r"^- (`[^:]*):", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert added <= named


def test_tables_of_the_console_are_its_models() -> None:
    named = set(re.findall(r"^- `(pgqueue_\w+)`: `", CONSOLE, re.MULTILINE))
    models = [model for model in apps.get_app_config("pgqueue").get_models() if model._meta.managed]
    assert named == {model._meta.db_table for model in models}


def test_channels_of_the_console_are_documented() -> None:
    channels = {value for name, value in vars(notify).items() if name.isupper() and isinstance(value, str)}
    assert channels == set(re.findall(r"^\| `(pgqueue_\w+)` \| console \|", SCHEMA, re.MULTILINE))


def test_every_page_has_its_address() -> None:
    """Compared by the first word of the path: the rest is the page's own."""
    documented = set(re.findall(r"`/([\w-]*)", (REFERENCE / "addresses.md").read_text(encoding="utf-8")))
    assert first_words(get_resolver().url_patterns) - documented <= {"live", "static", "sign-out"}


def first_words(patterns: list[URLPattern | URLResolver]) -> set[str]:
    return {re.split(r"[/<]", str(pattern.pattern).lstrip("^"))[0] for pattern in patterns if str(pattern.pattern)}

"""The page of retry rules for lease messages: explains each, saves one and undoes it; with scripts off."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.services import lease_rules
from tests.console.test_responses import answer, press
from tests.older_schema import set_back

PAGE = "/settings/lease-rules/"
TYPED = {
    "message_type": "render.*",
    "failed": "on",
    "lock_expired": "on",
    "times": "3",
    "wait": "60",
    "reason": "nightly",
}

pytestmark = pytest.mark.usefixtures("lease_schema")


@pytest.fixture
def look(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


def said(answer: Any) -> str:
    return unescape(re.sub(r"<[^>]+>|\s+", " ", answer.content.decode())).replace("\u00a0", " ")


def shown(client: Client) -> str:
    return re.sub(" +", " ", said(client.get(PAGE)))


def test_page_without_rules_says_what_a_rule_is_for(as_operator: Client) -> None:
    assert "stays dead until somebody retries it" in shown(as_operator)
    assert PAGE in as_operator.get("/settings/").content.decode()
    assert PAGE in as_operator.get("/settings/retry-rules/").content.decode()


def test_a_rule_is_kept_shown_and_undone_whichever_way(as_operator: Client, look: Connection) -> None:
    notice = answer(as_operator, as_operator.post(PAGE, TYPED))
    page = shown(as_operator)
    for words in ("render.*", "failed, lock_expired", "3 times, after 1 min to 4 min", "0 retries", "“nightly”"):
        assert words in page
    (kept,) = lease_rules.all_rules(look)
    assert (kept.message_type, kept.results, kept.times, kept.wait_seconds) == (
        "render.*", ["failed", "lock_expired"], 3, 60,
    )  # fmt: skip
    assert "created lease rule of render.*" in said(as_operator.get("/audit/"))
    notice = answer(as_operator, press(as_operator, notice, "Undo"))
    assert lease_rules.all_rules(look) == []
    press(as_operator, notice, "Undo")
    (again,) = lease_rules.all_rules(look)
    assert (again.message_type, again.results, again.times) == ("render.*", ["failed", "lock_expired"], 3)


@pytest.mark.parametrize(
    ("field", "typed", "words"),
    [
        ("times", "0", "between 1 and 20 retries"), ("times", "x", "between 1 and 20 retries"),
        ("wait", "100000", "between 1 second and a day"), ("message_type", "a\tb", "no kind of message"),
    ],
)  # fmt: skip
def test_invalid_rule_is_refused_and_kept_in_the_form(
    as_operator: Client, look: Connection, field: str, typed: str, words: str
) -> None:
    refused = as_operator.post(PAGE, {**TYPED, field: typed})
    assert (refused.status_code, words in said(refused)) == (422, True)
    assert 'value="nightly"' in refused.content.decode()
    assert lease_rules.all_rules(look) == []


def test_where_nothing_can_be_retried_it_says_why(as_operator: Client, settings: Any) -> None:
    as_operator.post(PAGE, TYPED)
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public"]}
    assert "Nothing is retried now. Its queue is in schema 'messages', which is not watched here" in shown(as_operator)


def test_tables_of_the_version_before_say_what_to_run(as_operator: Client, look: Connection) -> None:
    set_back(look, 9)
    refused = as_operator.post(PAGE, TYPED)
    assert "manage.py engine_schema" in said(refused)
    assert as_operator.get(PAGE).status_code == 200

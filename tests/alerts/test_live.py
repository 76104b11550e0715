"""What an open page of warnings is told: the counts, and of the rows those that it shows."""

import pytest
from django.test import Client

from pgqueue_admin.console.alerts import rows
from pgqueue_admin.live import topics
from tests.alerts.test_page import warning
from tests.console.pages import matched

pytestmark = pytest.mark.usefixtures("console_database")


def followed(client: Client, path: str) -> dict[str, str]:
    """What the topics of that page say."""
    said: dict[str, str] = {}
    for address in matched(r'data-topics="([^"]*)"', client.get(path).content.decode()).split():
        if found := topics.find(address):
            said |= found[0].render(found[1])
    return said


def test_of_thousands_of_warnings_a_page_is_told_those_that_it_shows(operator: Client) -> None:
    made = [warning(subject=f"Sales{number}") for number in range(rows.PAGE + 5)]
    newest, oldest = made[-1].pk, made[0].pk
    said = followed(operator, "/alerts/?by=list")
    assert said["alerts.open"] == str(len(made))
    assert sum(key.endswith(".sentence") for key in said) == rows.PAGE
    assert f"alert.{newest}.told" in said
    assert f"alert.{oldest}.told" not in said
    assert f"alert.{oldest}.told" in followed(operator, f"/alerts/{oldest}/")


def test_the_next_page_is_told_its_own(operator: Client) -> None:
    made = [warning(subject=f"Sales{number}") for number in range(rows.PAGE + 5)]
    after = matched(r'href="\?([^"]*after=[^"]*)"', operator.get("/alerts/?by=list").content.decode()).replace(
        "&amp;", "&"
    )
    said = followed(operator, f"/alerts/?{after}")
    assert {key for key in said if key.endswith(".value")} == {f"alert.{each.pk}.value" for each in made[:5]}


def test_a_page_without_warnings_follows_the_counts(operator: Client) -> None:
    assert followed(operator, "/alerts/")["alerts.open"] == "0"

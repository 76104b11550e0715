"""The last mail of a warning says what became of the messages; a follow-up mail names the number that doubled."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pgqueue_admin.alerts.dead_message_cursor import DeadGroup
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import AlertMail, database_clock
from tests.alerts.conftest import BILLING
from tests.alerts.test_evaluation import START, Clock

pytestmark = pytest.mark.usefixtures("console_database")

DECIDE = """
update messages.message_archive
set resolution = %(resolution)s, resolved_by = 'ana', resolved_at = clock_timestamp(), operation = %(operation)s
where id in (select id from messages.message_archive where state = 'dead' and exception_type = %(of)s limit %(most)s)
"""


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.now = database_clock.now()
    return clock


@pytest.fixture
def decide(connect: Callable[[str], Connection], console_database: str) -> Callable[..., None]:
    connection = connect(console_database)

    def decide(resolution: str, operation: int | None, most: int = 100, of: str = "Shop.Refused") -> None:
        about = {"resolution": resolution, "operation": operation, "most": most, "of": of}
        connection.run(DECIDE, about)

    return decide


def last() -> AlertMail:
    return AlertMail.objects.latest("id")


def flat(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").split())


def over(clock: Clock, die: Callable[..., None], decided: Callable[[], Any]) -> AlertMail:
    """Return the last mail, after 30 deaths, a pass halfway and the resolving pass."""
    die(30)
    began = clock.now - timedelta(minutes=1)
    clock.run_once(died={"Shop.Refused": 30}, lying=[DeadGroup(BILLING, "Shop.Refused", 30, began)])
    decided()
    clock.run_once(0.1, lying=[DeadGroup(BILLING, "Shop.Refused", 11, began)])
    clock.run_once(0.1, lying=[])
    return last()


def test_resolution_mail_names_who_decided_on_how_many(
    clock: Clock, die: Callable[..., None], decide: Callable[..., None]
) -> None:
    def decided() -> None:
        die(5, "Shop.Other")
        decide("discarded", 2, most=19)
        decide("succeeded", 3)
        decide("discarded", 4, of="Shop.Other")

    mail = over(clock, die, decided)
    said = "What became of them: 19 discarded by ana, operation 2; 11 retried and succeeded by ana, operation 3."
    for part in (mail.text, mail.html):
        assert said in flat(part)
        assert "Billing: dead messages by Refused" in flat(part)
        assert "11 dead" not in flat(part), "seen halfway"


def test_resolution_mail_counts_deaths_archived_late(
    clock: Clock, die: Callable[..., None], decide: Callable[..., None], connect: Callable[[str], Connection],
    console_database: str,
) -> None:  # fmt: skip
    """The error queue was emptied hours late; or within seconds of each death."""

    def decided() -> None:
        connect(console_database).run("update messages.message_archive set died_at = died_at - interval '5 hours'")
        decide("discarded", 2)

    assert "What became of them: 30 discarded by ana, operation 2." in flat(over(clock, die, decided).text)


def test_resolution_mail_omits_unknown_outcomes(clock: Clock, die: Callable[..., None]) -> None:
    assert "What became" not in over(clock, die, lambda: None).text


def test_mail_subject_and_foot_count_deaths_since_the_beginning(clock: Clock) -> None:
    """The next mail is due when that number doubles. The text shows how many are dead now."""
    clock.run_once(died={"Refused": 1_000})
    assert "Next mail at 2,000 deaths since it began" in flat(last().text)
    (subject,) = clock.run_once(6, died={"Refused": 2_000}, lying=[DeadGroup(BILLING, "Refused", 40, START)])
    assert "now Billing 3,000 died (Refused)" in subject.replace("\u00a0", " ")
    for part in (last().text, last().html):
        assert "Next mail at 6,000 deaths since it began" in flat(part)
        assert "40 dead messages by Refused" in flat(part)

"""The bin: what was discarded, by whom, why, and until when it can be restored."""

import re
from datetime import timedelta
from typing import Any

from django.test import Client

from pgqueue_admin.console.bin import rows
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Operation, database_clock
from pgqueue_admin.services import content_access
from pgqueue_admin.services.operations import runner
from tests.console.operating import choose, follow, start
from tests.console.pages import shown
from tests.console.recorded import Recorded


def test_an_empty_bin_says_how_long_it_keeps(as_viewer: Client, console_database: str, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30}
    html = shown(as_viewer, "/bin/")
    assert "The bin is empty" in html
    assert "for 30 days" in html


def test_bin_says_who_discarded_what_why_and_until_when(recorded: Recorded, cards: list[int], settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30}
    recorded.operator.post("/operations/", {"act": "discard", "id": cards[0], "at_once": "yes", "reason": "<junk>"})
    html = shown(recorded.viewer, "/bin/")
    number = Operation.objects.get().pk
    for said in ("1 discarded", "by ana", "&lt;junk&gt;", f'href="/operations/{number}/"', "in 29 d", "Billing"):
        assert said in html, said
    assert "Restore: needs the right" in html
    assert f'name="id" value="{cards[0]}"' not in html


def test_ticked_ones_are_restored(recorded: Recorded, cards: list[int]) -> None:
    recorded.operator.post("/operations/", {"act": "discard", "id": cards[0], "at_once": "yes"})
    assert f'name="id" value="{cards[0]}"' in shown(recorded.operator, "/bin/")
    answer = recorded.operator.post("/operations/", {"act": "restore", "id": cards[0]})
    number = int(re.findall(r"\d+", answer["Location"])[0])
    recorded.operator.post(answer["Location"] + "start/")
    runner.run_chunk(number)
    assert recorded.state(cards[0]) == "dead"
    assert "The bin is empty" in shown(recorded.operator, "/bin/")


def _discarded(connection: Connection, archive_id: int, **ago: int) -> None:
    decided = "died_at = now() - %(ago)s, resolved_at = now() - %(ago)s"
    mark = (
        f"update messages.message_archive set resolution = 'discarded', resolved_by = 'bo', {decided} where id = %(id)s"
    )
    connection.run(mark, {"id": archive_id, "ago": timedelta(**ago)})


def test_message_near_its_removal_is_red_and_an_overdue_one_says_so(
    recorded: Recorded, cards: list[int], settings: Any
) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30}
    _discarded(recorded.connection, cards[0], days=29, hours=12)
    _discarded(recorded.connection, cards[1], days=31)
    html = shown(recorded.viewer, "/bin/")
    assert html.count('class="crit"') == 2
    assert "in 11 h" in html
    assert "at the next clean-up" in html
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 0}
    html = shown(recorded.viewer, "/bin/")
    assert html.count("never") >= 2
    assert 'class="crit"' not in html


def test_pages_follow_one_another(recorded: Recorded) -> None:
    recorded.connection.run(
        "update messages.message_archive set resolution = 'discarded', resolved_by = 'bo', resolved_at = now()"
        " where state = 'dead' and id in (select id from messages.message_archive where state = 'dead' limit 60)"
    )
    first = shown(recorded.viewer, "/bin/")
    onward = re.search(r'rel="next" href="([^"]+)"', first)
    assert onward
    second = shown(recorded.viewer, "/bin/" + onward[1].replace("&amp;", "&"))
    ids = [re.findall(r'<tr role="row" id="m(\d+)"', each) for each in (first, second)]
    assert (len(ids[0]), len(ids[1])) == (50, 10)
    assert not set(ids[0]) & set(ids[1])
    assert "Nothing more is in the bin" in shown(recorded.viewer, "/bin/?after=" + _past_all())


def _past_all() -> str:
    from pgqueue_admin.console import pagination

    return pagination.pack("1970-01-01T00:00:00+00:00", 1)


def test_times_beyond_any_calendar_are_not_counted_down(recorded: Recorded, cards: list[int]) -> None:
    recorded.connection.run(
        "update messages.message_archive set resolution = 'discarded', resolved_by = 'bo', resolved_at = now(),"
        " died_at = 'infinity' where id = %(id)s",
        {"id": cards[0]},
    )
    assert "1 discarded" in shown(recorded.viewer, "/bin/")
    assert rows.of([], 30, database_clock.now(), content_access.ALL) == []


def test_ticked_ones_are_restored_and_retried(recorded: Recorded, cards: list[int]) -> None:
    before = recorded.rows("Billing")
    frozen = choose(recorded.operator, "discard", cards)
    start(recorded.operator, frozen["Location"])
    runner.run(Operation.objects.get().pk)
    assert "Restore and retry…" in shown(recorded.operator, "/bin/")
    asked = choose(recorded.operator, "restore and retry", cards[:2])
    preview = follow(recorded.operator, asked)
    assert "Restore and retry 2 messages to Billing in" in preview
    assert "one that cannot be retried stays there" in preview
    assert re.search("(Their|of their) causes struck", preview)
    start(recorded.operator, asked["Location"])
    runner.run(Operation.objects.latest("pk").pk)
    assert "2 retried." in shown(recorded.operator, asked["Location"])
    assert recorded.rows("Billing") == before + 2
    assert choose(recorded.viewer, "restore and retry", cards[2:]).status_code == 303
    assert recorded.rows("Billing") == before + 2

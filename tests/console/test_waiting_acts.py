"""Acts on waiting messages, as pages offer them: ticks, a confirmation, the outcome; with scripts off."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.models import AuditEntry, Endpoint, Queue
from tests.console.pages import shown
from tests.console.recorded import Recorded
from tests.console.sampled import sample

LIST = "/queues/public/Mailer/messages/"
ACTS = LIST + "acts/"


@pytest.fixture
def mailer(recorded: Recorded) -> Recorded:
    sample()
    Endpoint.objects.filter(table="Mailer").delete()
    Endpoint.objects.create(name="Mailer", schema="public", table="Mailer")
    return recorded


def ticks(client: Client, number: int, page: str = LIST) -> list[str]:
    return re.findall(r'name="id" value="([^"]+)"', shown(client, page))[:number]


def asked(client: Client, status: int = 200, page: str = ACTS, **fields: Any) -> str:
    response = client.post(page, {"next": LIST, **fields})
    assert response.status_code == status
    return unescape(response.content.decode()).replace("\N{NO-BREAK SPACE}", " ")


def done(client: Client, page: str = ACTS, **fields: Any) -> str:
    """The text of the page that the act leads to."""
    response = client.post(page, {"next": LIST, "sure": "yes", **fields})
    assert response.status_code == 303
    return unescape(shown(client, response["Location"]))


def test_ticked_ones_are_asked_for_and_then_discarded(mailer: Recorded) -> None:
    client, before = mailer.operator, mailer.rows("Mailer")
    ids = ticks(client, 2)
    html = asked(client, act="discard", id=ids)
    for said in ("Discard 2 messages of Mailer in", "nothing done yet", "Discard 2", "Keep them", "2 messages"):
        assert said in html
    assert mailer.rows("Mailer") == before
    html = done(client, act="discard", id=ids, reason="junk")
    assert "2 messages discarded from Mailer. Restore brings it back" in html
    assert mailer.rows("Mailer") == before - 2
    entry = AuditEntry.objects.get(verb="discard")
    assert (entry.who, entry.count, entry.origin, entry.reason) == ("ana", 2, "console", "junk")
    assert shown(client, "/bin/").count("junk") == 2


def test_waiting_message_is_moved_from_its_page(mailer: Recorded) -> None:
    row: Any = mailer.connection.one('select id, seq from "Mailer" order by seq limit 1')
    own, tick = f"{LIST}{row.id}/", f"{row.id}:{row.seq}"
    html = shown(mailer.operator, own)
    for word in ("Discard…", "Move…", "Move to dead…"):
        assert word in html
    assert f'value="{tick}"' in html
    question = asked(mailer.operator, act="move", id=tick, next=own)
    assert "Move 1 message of Mailer in" in question
    to = '"public"."Sales"'
    assert f'<option value="{to}"' in question
    unmoved = asked(mailer.operator, 422, act="move", id=tick, sure="yes")
    assert "Nothing was moved: choose the queue that they go to." in unmoved
    html = done(mailer.operator, act="move", id=tick, next=own, to=to)
    assert "1 message moved out of Mailer to Sales." in html
    assert mailer.connection.value('select count(*) from "Sales" where id = %(id)s', {"id": row.id}) == 1
    html = done(mailer.operator, act="move", id=tick, next=LIST, to=to)
    assert "Nothing was moved. It is being received, or was, since you looked." in html


def test_a_discarded_one_leads_to_it_in_the_archive_with_the_way_back(mailer: Recorded) -> None:
    row: Any = mailer.connection.one('select id, seq from "Mailer" order by seq limit 1')
    html = done(
        mailer.operator, act="discard", id=f"{row.id}:{row.seq}", next=f"{LIST}{row.id}/", reason="it is a <test>"
    )
    assert "Discarded by ana while it waited in Mailer" in html
    assert "it is a <test>" in html
    assert "Restore" in html


def test_messages_that_have_left_are_counted(mailer: Recorded) -> None:
    ids = ticks(mailer.operator, 3)
    mailer.connection.run('delete from "Mailer" where id = %(id)s', {"id": ids[0].partition(":")[0]})
    question = asked(mailer.operator, act="move_out", id=ids)
    assert "has left since you looked" in question
    html = done(mailer.operator, act="move_out", id=ids)
    assert "2 messages moved to dead out of Mailer." in html
    assert "1 of 3 was not moved. It is being received, or was, since you looked." in html


def test_many_need_a_reason_and_a_page_is_the_most(mailer: Recorded) -> None:
    ids = ticks(mailer.operator, 50)
    assert len(ids) == 50
    html = asked(mailer.operator, 422, act="discard", id=ids, sure="yes")
    assert "Nothing was discarded: above 20 messages a reason is asked for." in html
    more = [f"{ids[0].partition(':')[0]}:{number}" for number in range(51)]
    assert "at most 50 messages" in done(mailer.operator, act="discard", id=more)
    assert "no message was ticked" in done(mailer.operator, act="discard", id="nonsense")
    assert mailer.operator.post(ACTS, {"act": "burn"}).status_code == 404


def test_a_viewer_sees_why_not(mailer: Recorded) -> None:
    html = shown(mailer.viewer, LIST)
    assert "Discard: needs the right" in html
    ids = ticks(mailer.viewer, 1)
    assert "needs the right" in asked(mailer.viewer, act="discard", id=ids)
    assert "Nothing was discarded: needs the right" in asked(mailer.viewer, 403, act="discard", id=ids, sure="yes")


def test_a_foreign_queue_is_switched_on_in_its_settings(mailer: Recorded) -> None:
    Endpoint.objects.filter(table="Mailer").delete()
    html = shown(mailer.operator, LIST)
    assert "No endpoint of this console receives from Mailer." in html
    assert 'name="id"' not in html
    settings = "/settings/queues/public/Mailer/"
    html = shown(mailer.operator, settings)
    assert "Its own program never sees a message that is taken out here, and is not notified." in html
    version = re.search(r'name="version" value="(\d+)"', html)
    assert version
    mailer.operator.post(settings, {"version": version[1], "acts_allowed": "on", "reason": "asked by Tom"})
    entry = AuditEntry.objects.get(noun="queue")
    assert ((entry.before or {})["acts_allowed"], (entry.after or {})["acts_allowed"]) == (False, True)
    html = asked(mailer.operator, act="discard", id=ticks(mailer.operator, 1))
    assert "is no queue of this console" in html
    Queue.objects.filter(table="Mailer").update(acts_allowed=False)
    refused = asked(mailer.operator, 422, act="discard", id="00000000-0000-0000-0000-000000000000:1", sure="yes")
    assert "Nothing was discarded. No endpoint of this console receives from Mailer." in refused


def test_delayed_ones_go_now_or_are_cancelled(mailer: Recorded) -> None:
    name, home = "Sales.Delayed", "Sales"
    Endpoint.objects.get_or_create(name=home, schema="public", table=home)
    page = f"/queues/public/{name}/messages/"
    put = f"insert into \"{name}\" (headers, body, due) values ('{{\"a\": \"<script>\"}}', 'x', '1999-01-01')"
    for _ in range(2):
        mailer.connection.run(put)
    listed = ticks(mailer.operator, 99, page)
    assert listed
    first, second = [each for each in listed if ":1999" in each][:2]
    before = mailer.rows(home)
    assert f"Run 1 message of {name} now in" in asked(mailer.operator, page=page + "acts/", act="run_now", id=first)
    html = done(mailer.operator, page=page + "acts/", act="run_now", id=first, next=page)
    assert f"1 message sent on from {name}." in html
    assert mailer.rows(home) == before + 1
    html = done(mailer.operator, page=page + "acts/", act="cancel", id=second, next=page)
    assert f"1 message cancelled in {name}." in html
    row_id = second.partition(":")[0]
    assert "Run now…" in shown(mailer.operator, f"{page}{ticks(mailer.operator, 1, page)[0].partition(':')[0]}/")
    assert mailer.connection.value(f'select count(*) from "{name}" where id = %(id)s', {"id": row_id}) == 0


def test_a_queue_that_is_gone_is_said(mailer: Recorded) -> None:
    ids = ticks(mailer.operator, 1)
    mailer.connection.run('drop table "Mailer"')
    assert "There is no queue table Mailer now." in asked(mailer.operator, act="discard", id=ids)
    assert "Nothing was discarded. There is no queue table Mailer now." in asked(
        mailer.operator, 422, act="discard", id=ids, sure="yes"
    )

"""The page of a message that crashes its process, and moving it out with scripts off."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from pgqueue_admin.console.workers import cells
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, Process
from pgqueue_admin.models.crashing_messages import SHOWN
from tests.console.pages import Answer
from tests.crashing_messages import crashing_message


def well() -> dict[str, object]:
    return {"started_at": timezone.now(), "heartbeat_at": timezone.now(), "state": "running"}


@pytest.fixture
def session(console_database: str) -> Iterator[Connection]:
    with postgresql().connect(console_database, for_handlers=True) as connection:
        yield connection


@pytest.fixture
def row(session: Connection, console_database: str) -> Any:
    Endpoint.objects.create(name="Sales", table="Sales", desired_processes=1)
    return crashing_message(session, console_database)


def text(response: Answer) -> str:
    assert response.status_code == 200
    return response.content.decode().replace("\u00a0", " ")


@pytest.mark.parametrize("page", ["/endpoints/Sales/", "/workers/"])
def test_pages_of_its_endpoint_lead_to_it(as_operator: Client, row: Any, page: str) -> None:
    html = text(as_operator.get(page))
    assert f'href="/crashing-messages/{row.id}/"' in html
    assert "Move that message out…" in html
    assert "ended by SIGSEGV" in html


def test_its_page_says_what_would_be_moved(as_operator: Client, row: Any) -> None:
    html = text(as_operator.get(f"/crashing-messages/{row.id}/"))
    for said in ("1 message", "3 deaths", "app-1", "ended by SIGSEGV", "alone at", "Reason, kept in the audit"):
        assert said in html


def test_of_many_deaths_the_newest_are_shown_and_the_rest_counted(
    as_operator: Client, session: Connection, console_database: str
) -> None:
    for deaths, name, before in ((SHOWN, "Sales", ""), (SHOWN + 10, "Billing", "and 10 before")):
        Endpoint.objects.create(name=name, table=name, desired_processes=1)
        html = text(
            as_operator.get(f"/crashing-messages/{crashing_message(session, console_database, deaths, name).id}/")
        )
        assert f"{deaths} deaths" in html
        assert html.count('data-l="Ended"') == SHOWN
        assert ("and 10 before" in html) == bool(before)


def test_moving_it_out_leads_to_it_in_the_archive(as_operator: Client, row: Any, session: Connection) -> None:
    response = as_operator.post(f"/crashing-messages/{row.id}/move-out/", {"reason": "segfaults"})
    assert response.status_code == 303
    html = text(as_operator.get(response["Location"]))
    assert "Moved out of Sales. It is dead, in the archive; Sales goes on." in html
    assert "Moved out by ana" in html
    assert "segfaults" in html
    assert AuditEntry.objects.get(verb="move out").reason == "segfaults"
    assert session.value('select count(*) from "Sales"') == 0
    after = text(as_operator.get(f"/crashing-messages/{row.id}/"))
    assert "It is no longer in its queue" in after
    assert f'href="{response["Location"]}"' in after
    assert "Move that message out" not in text(as_operator.get("/endpoints/Sales/"))


@pytest.mark.parametrize(
    ("facts", "said", "act"),
    [
        ({"desired_processes": 0}, "Sales is stopped.", "start"),
        ({"paused": True}, "Sales is paused.", "resume"),
        ({}, "Sales starts again in", "start"),
    ],
)
def test_an_endpoint_that_does_not_go_on_is_not_said_to(
    as_operator: Client, row: Any, facts: dict[str, Any], said: str, act: str
) -> None:
    now = timezone.now()
    Process.objects.create(role="supervisor", host="app-1", pid=1, start_ticks=1, **well())
    gone = {"started_at": now, "heartbeat_at": now, "ended_at": now, "next_start_at": now + timedelta(seconds=90)}
    Process.objects.create(
        role="endpoint", endpoint="Sales", host="app-1", pid=2, start_ticks=1, state="back-off", **gone
    )
    Endpoint.objects.update(**facts)
    html = text(as_operator.post(f"/crashing-messages/{row.id}/move-out/", follow=True))
    assert f"It is dead, in the archive; {said}" in html
    assert "goes on" not in html
    assert f'action="/endpoints/Sales/{act}/"' in html


def test_crashing_message_in_flight_is_not_moved_and_says_so(
    as_operator: Client, row: Any, session: Connection
) -> None:
    with session.transaction():
        session.run('select from "Sales" for update')
        response = as_operator.post(f"/crashing-messages/{row.id}/move-out/", follow=True)
    assert "It is in flight at this moment. Stop the endpoint" in text(response)


def test_a_viewer_is_told_and_moves_nothing(as_viewer: Client, row: Any, session: Connection) -> None:
    assert (
        "needs the right “Can discard and restore dead messages”, which an administrator gives in Django admin"
        in text(as_viewer.get(f"/crashing-messages/{row.id}/"))
    )
    assert "Nothing was moved" in text(as_viewer.post(f"/crashing-messages/{row.id}/move-out/", follow=True))
    assert session.value('select count(*) from "Sales"') == 1


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_message_nobody_died_of_is_not_found(as_operator: Client, console_database: str, method: str) -> None:
    address = "/crashing-messages/00000000-0000-0000-0000-000000000000/" + ("move-out/" if method == "post" else "")
    assert getattr(as_operator, method)(address).status_code == 404


def test_a_stranger_is_sent_to_sign_in(stranger: Client, row: Any) -> None:
    assert "/sign-in/" in stranger.get(f"/crashing-messages/{row.id}/")["Location"]


def test_moving_by_get_is_refused(as_operator: Client, row: Any) -> None:
    assert as_operator.get(f"/crashing-messages/{row.id}/move-out/").status_code == 405


def test_workers_opens_with_it(as_operator: Client, row: Any) -> None:
    Process.objects.create(role="supervisor", host="app-1", pid=1, start_ticks=1, **well())
    Process.objects.create(role="endpoint", endpoint="Sales", host="app-1", pid=2, start_ticks=1, **well())
    html = text(as_operator.get("/workers/"))
    assert "Sales keeps ending over one message" in html
    assert cells.live("")["workers.verdict"].endswith("</svg>Sales keeps ending over one message")

"""The warning of dead lease messages links to them from mail and pages, though their clients name no queue."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.console.archive import search
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AlertMail, Queue
from pgqueue_admin.services.content_access import ALL

PUBLIC = "https://pgqueue.ravenhill.example"
LEASE = '"messages"."message"'
_DIE = """
insert into messages.message_archive (created_at, message, result, handled_by)
values (now(), '{"of": "an original client"}', 'lock_expired', 'worker')
"""


@pytest.fixture
def session(console_database: str, settings: Any) -> Any:
    settings.PGQUEUE = {**settings.PGQUEUE, "ALERT_TO": ["oncall@example.org"], "PUBLIC_URL": PUBLIC}
    with postgresql().connect(console_database, for_handlers=True) as connection:
        yield connection


def warned_of(session: Connection) -> AlertMail:
    alerter = Alerter()
    alerter.run_once()  # messages that were dead before the first look are not mailed
    session.run(_DIE)
    alerter.run_once()
    return AlertMail.objects.get()


def links(text: str, start: str) -> set[str]:
    return {unescape(link) for link in re.findall(rf'{re.escape(start)}[^\s"<]*', text)}


def lists_it(operator: Client, path: str, session: Connection) -> bool:
    number = session.value("select id from messages.message_archive")
    return f"/archive/{number}/" in operator.get(path).content.decode()


def test_the_links_of_its_warning_open_a_page_that_lists_it(session: Connection, operator: Client) -> None:
    mail = warned_of(session)
    in_mail = links(mail.text, f"{PUBLIC}/archive/")
    assert in_mail
    for link in in_mail:
        assert lists_it(operator, link.removeprefix(PUBLIC), session), link
    (to_failures,) = links(mail.text, f"{PUBLIC}/failures/")
    for page in ("/alerts/", f"/alerts/{mail.alert_id}/", "/"):
        said = operator.get(page).content.decode()
        assert to_failures.removeprefix(PUBLIC) in links(said, "/failures/?"), page
        assert "Open the failures" in said, page
    assert "lock_expired" in operator.get(to_failures.removeprefix(PUBLIC)).content.decode()


def test_page_count_and_frozen_set_agree(session: Connection) -> None:
    warned_of(session)
    store.archive_failed(session, DeadMessage(queue=LEASE))
    store.archive_failed(session, DeadMessage(queue='"public"."Billing"'))
    for typed, number in ((f"queue:{LEASE}", 2), ("queue:messages.message result:lock_expired", 1)):
        chosen = search.read(typed, ALL).filter
        assert len(store.page(session, chosen).messages) == store.count(session, chosen, 10).number == number
        frozen = postgresql().operation.freeze_matching(**store.matching(chosen))
        assert session.run(frozen, {**chosen.params(), "operation_id": number}) == number
    assert store.count(session, search.read("queue:Billing", ALL).filter, 10).number == 1


@pytest.mark.parametrize(("schemas", "opens"), [(["public"], False), (["public", "messages"], True)])
def test_the_queues_page_is_a_link_where_it_can_be_opened(
    session: Connection, operator: Client, settings: Any, schemas: list[str], opens: bool
) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": schemas}
    Queue.objects.create(schema="public", table="Billing", kind="input")
    if opens:
        Queue.objects.create(schema="messages", table="message", kind="lease")
    path, mail = "/queues/messages/message/", warned_of(session)
    shown = [
        mail.text,
        *(operator.get(page).content.decode() for page in ("/alerts/", f"/alerts/{mail.alert_id}/", "/")),
    ]
    assert [path in each for each in shown] == [opens] * 4
    assert operator.get(path).status_code == 200, "also of one that is not watched: its dead messages are known"

"""Retry rules and lease rules in Django admin: viewed, and removed through the console's services."""

from collections.abc import Callable

import pytest
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import AuditEntry, RetryRule
from pgqueue_admin.services import lease_rules
from pgqueue_admin.services.lease_rules import RuleDraft
from tests.archived_messages import OPERATOR, person
from tests.older_schema import set_back

LEASE, RETRY = "/admin/pgqueue/leaserule/", "/admin/pgqueue/retryrule/"
DRAFT = RuleDraft("render.*", ("failed", "lock_expired"), 3, 60)
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def engine(console_database: str, connect: Callable[..., Connection], settings: Settings) -> Connection:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    return connect(console_database)


@pytest.fixture
def root() -> Client:
    return signed_in("root", is_superuser=True)


def signed_in(name: str, *permissions: str, **more: bool) -> Client:
    client = Client()
    client.force_login(person(name, *permissions, is_staff=True, **more))
    return client


def remove(client: Client, page: str, *numbers: int) -> str:
    asked = {"action": "remove", "_selected_action": list(numbers)}
    return client.post(page, asked, follow=True).content.decode()


def test_lease_rules_are_listed_shown_and_removed(engine: Connection, root: Client) -> None:
    one = lease_rules.create(DRAFT, "ana", "console")
    two = lease_rules.create(RuleDraft(HOSTILE, ("rejected",), 1, 1), "ana", "console")
    page = root.get(LEASE).content.decode()
    assert "failed, lock_expired" in page
    assert HOSTILE not in page
    assert "render.*" in root.get(f"{LEASE}{one}/change/").content.decode()
    assert "2 lease rules removed." in remove(root, LEASE, one, two)
    assert engine.value("select count(*) from messages.lease_rule") == 0
    newest = AuditEntry.objects.filter(noun="lease rule", verb="remove").latest("pk")
    assert (newest.who, newest.origin) == ("root", "admin")


def test_retry_rules_likewise(root: Client) -> None:
    rule = RetryRule.objects.create(message_type=HOSTILE, target='"public"."Sales"', who="ana")
    assert HOSTILE not in root.get(RETRY).content.decode()
    assert HOSTILE not in root.get(f"{RETRY}{rule.pk}/change/").content.decode()
    assert "1 retry rule removed." in remove(root, RETRY, rule.pk)
    assert AuditEntry.objects.get(noun="retry rule").origin == "admin"


def test_viewer_removes_no_rule(engine: Connection) -> None:
    one = lease_rules.create(DRAFT, "ana", "console")
    rule = RetryRule.objects.create(message_type="Shop.Old", target='"public"."Sales"', who="ana")
    viewer = signed_in("viewer", "view_leaserule", "view_retryrule")
    for page, number in ((LEASE, one), (RETRY, rule.pk)):
        assert viewer.get(page).status_code == 200
        remove(viewer, page, number)
        assert viewer.get(f"{page}add/").status_code == 403
        assert viewer.post(f"{page}{number}/delete/", {"post": "yes"}).status_code == 403
        remove(signed_in(f"ana{number}{page[15]}", *OPERATOR), page, number)
    assert engine.value("select count(*) from messages.lease_rule") == 1
    assert RetryRule.objects.exists()


def test_without_the_tables_it_names_the_command(engine: Connection, root: Client) -> None:
    set_back(engine, 9)
    for url in (LEASE, f"{LEASE}5/change/"):
        page = root.get(url)
        assert (page.status_code, "manage.py engine_schema" in page.content.decode()) == (200, True)

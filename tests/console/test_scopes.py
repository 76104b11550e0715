"""The page of queue scopes: users who may change groups grant, change and remove scopes; others read them."""

from collections.abc import Iterator
from html import unescape

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from pgqueue_admin.console import url_converters
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Queue, QueueScope
from tests.console.pages import shown
from tests.console.recorded import Recorded
from tests.console.sampled import sample

PAGE = "/settings/scopes/"


@pytest.fixture
def root(looked_at: Recorded) -> Iterator[Client]:
    sample()
    client = Client()
    client.force_login(User.objects.create_superuser("scoping"))
    yield client
    QueueScope.objects.all().delete()
    Group.objects.filter(name="billing").delete()
    User.objects.filter(username__in=("scoping", "narrow")).delete()


@pytest.fixture
def group(root: Client) -> Group:
    return Group.objects.create(name="billing")


def first(order: str = "pk") -> Queue:
    return Queue.objects.filter(gone_since=None, schema="public").order_by(order)[0]


def address(queue: Queue) -> Address:
    return Address(queue.schema, queue.table)


def test_a_scope_is_given_and_taken(root: Client, group: Group) -> None:
    assert "Everybody who signs in sees every queue" in shown(root, PAGE)
    said = {"group": str(group.pk), "pattern": str(first()), "reason": "SEC-7"}
    assert root.post(PAGE, said).status_code == 303
    page = unescape(shown(root, PAGE))
    for each in (str(first()), "1 of ", "to look", "a scope of", "SEC-7", f"People of billing see {first()}"):
        assert each in page, each
    number = QueueScope.objects.get().pk
    root.post(PAGE, {"act": str(number), "may": "yes"})
    assert QueueScope.objects.get().may_act
    assert "created a queue scope of billing" in unescape(shown(root, "/audit/?q=on:scope"))
    root.post(PAGE, {"remove": str(number)})
    assert "It was the last" in shown(root, PAGE)
    assert not QueueScope.objects.exists()


def test_invalid_scope_is_refused_with_its_reason(root: Client, group: Group) -> None:
    answer = root.post(PAGE, {"group": str(group.pk), "pattern": "Billing"})
    assert answer.status_code == 422
    assert "A pattern is schema.queue" in answer.content.decode()
    assert root.post(PAGE, {"pattern": "public.*"}).status_code == 422


def test_scope_changes_need_the_change_group_right(looked_at: Recorded, root: Client, group: Group) -> None:
    page = unescape(shown(looked_at.operator, PAGE))
    assert "needs the right “Can change group”" in page
    answer = looked_at.operator.post(PAGE, {"group": str(group.pk), "pattern": "public.*"})
    assert answer.status_code == 403
    assert not QueueScope.objects.exists()


def test_scoped_user_is_told_so_and_led_to_visible_queues(root: Client, group: Group) -> None:
    mine, other = url_converters.queue(address(first())), url_converters.queue(address(first("-pk")))
    QueueScope.objects.create(group=group, pattern=str(first()))
    narrow, client = User.objects.create_user("narrow"), Client()
    narrow.groups.add(group)
    client.force_login(narrow)
    overview = shown(client, "/")
    assert f'href="{mine}"' in overview
    assert f'href="{other}"' not in overview
    assert "known of all queues together" in overview
    page = shown(client, "/queues/")
    assert 'id="scope"' in page
    assert f'href="{mine}"' in page
    assert f'href="{other}"' not in page
    assert 'href="/history/"' not in page
    for path, why, instead in (
        ("/history/", "messages of all queues together", "/trends/"),
        ("/trends/messages/", "messages of all queues together", "/archive/"),
        ("/outbox/", "An outbox belongs to no queue", "/endpoints/"),
        ("/workers/1/log/", "whatever a process prints", "/workers/"),
        ("/settings/", "shows all queues together", "/queues/"),
    ):
        refused = client.get(path)
        assert refused.status_code == 403
        main = refused.content.decode().partition("<main")[2]
        assert why in main, path
        assert f'href="{instead}"' in main, path
    assert client.get(other).status_code == 404
    assert str(first()) in shown(client, "/me/")
    assert 'id="scope"' not in shown(root, "/queues/")

"""The filter of the lease queue's list: state, age, and words of the message; held by the address."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from django.conf import settings as django_settings
from django.test import Client, override_settings
from django.utils.html import escape

from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.monitor import lease_messages
from pgqueue_admin.services.content_access import REFUSED
from tests.console.recorded import Recorded

LIST = "/queues/messages/message/messages/"


@pytest.fixture(scope="module")
def viewer(looked_at: Recorded) -> Iterator[Client]:
    """1 expired, 2 locked, 3 later, 4 an hour old and waiting, 5 waiting."""
    queue = LeaseQueue(looked_at.dsn, name="thumbs")
    queue.publish_many([{"kind": "render", "asset": f"Sku/{name}.png", "pct": "5%_"} for name in "abc"])
    queue.publish_many([{"kind": "purge", "asset": "<b>ä</b>"}, ["raise"]])
    _, _, later = queue.claim(3, lock_for=600)
    queue.release(later, after=3600)
    queue.close()
    run = looked_at.connection.run
    run("update messages.message set lock_expires_at = now() at time zone 'utc' - interval '1 s' where id = 1")
    run("update messages.message set created_at = created_at - interval '2 hours' where id = 4")
    with override_settings(PGQUEUE={**django_settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}):
        yield looked_at.viewer


@pytest.mark.parametrize("order", ["number", "newest"])
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("is:expired", [1]), ("is:locked", [2]), ("is:later", [3]), ("is:waiting", [4, 5]),
        ("is:locked is:later", [2, 3]),
        ("age:>1h", [4]), ("age:<1h", [1, 2, 3, 5]), ("age:1h..3h", [4]), ("sku/B", [2]), ("asset", [1, 2, 3, 4]),
        ('"<b>ä"', [4]), ("5%_", [1, 2, 3]), ("render is:later", [3]), ("raise", [5]), ("nothing", []),
    ],
)  # fmt: skip
def test_what_is_typed_is_what_is_shown(viewer: Client, typed: str, expected: list[int], order: str) -> None:
    answer = viewer.get(LIST, {"q": typed, "order": order})
    page = answer.content.decode()
    assert answer.status_code == 200
    shown = [int(number) for number in re.findall(r'messages/(\d+)/"', page)]
    assert shown == (expected if order == "number" else expected[::-1])
    assert "<b>ä" not in page
    assert "Looked through 5" in unescape(page).replace("\u00a0", " ")
    assert ("Above 64 kB" in page) == (not expected)


@pytest.mark.parametrize(("typed", "why"), [("is:gone", "is:expired"), ("age:1h", "which side"), ("who:x", "no field")])
def test_what_is_not_understood_is_said(viewer: Client, typed: str, why: str) -> None:
    page = viewer.get(LIST, {"q": typed}).content.decode()
    assert why in page
    assert "Nothing was looked for" in page
    assert not re.findall(r'messages/(\d+)/"', page)


@pytest.mark.parametrize("order", ["number", "newest"])
def test_it_goes_on_behind_what_one_page_looks_through(
    viewer: Client, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_messages, "REACH", 2)
    found, path = [], f"{LIST}?q=purge&order={order}"
    while path:
        page = viewer.get(path).content.decode()
        found += re.findall(r'messages/(\d+)/"', page)
        onward = re.search(r'rel="next" href="([^"]+)"', page)
        path = LIST + unescape(onward[1]) if onward else ""
    assert found == ["4"]


def test_who_may_not_read_messages_may_not_look_for_their_words(viewer: Client, looked_at: Recorded) -> None:
    for typed in ("sku/B", "is:locked render"):
        page = looked_at.counter.get(LIST, {"q": typed}).content.decode()
        assert escape(REFUSED) in page
        assert "Nothing was looked for" in page
        assert not re.findall(r'messages/(\d+)/"', page)
    assert re.findall(r'messages/(\d+)/"', looked_at.counter.get(LIST, {"q": "is:locked"}).content.decode()) == ["2"]
    assert "Sku" not in looked_at.counter.get(LIST).content.decode()

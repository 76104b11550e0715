"""The filter of the lease queue's list: the archive's search grammar over waiting messages, kept in the address."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
from django.conf import settings as django_settings
from django.test import Client, override_settings
from django.utils.html import escape

from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.monitor import waiting_search
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


def said(html: str) -> str:
    return " ".join(unescape(re.sub("<[^>]+>", " ", html)).replace("\u00a0", " ").split())


@pytest.mark.parametrize("order", ["number", "newest"])
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("is:expired", [1]), ("is:locked", [2]), ("is:later", [3]), ("is:waiting", [4, 5]),
        ("is:locked OR is:later", [2, 3]), ("-is:waiting", [1, 2, 3]), ("is:locked (is:later)", []),
        ("type:render", [1, 2, 3]), ("type:=raise", [5]), ("type:re*", [1, 2, 3]), ("-type:render", [4, 5]),
        ("body.asset:b.png", [2]), ("body.asset:=Sku/b.png", [2]), ("body.asset:sku/*", []), ("body.no.such:1", []),
        ("body:Sku/b", [2]), ("body:sku/b", []), ('"""asset"": ""Sku/b"', [2]), ('"Sku/b.png"', [2]),
        ("-render age:<1h", [5]), ("(is:later OR type:raise) -is:locked", [3, 5]), ("id:2", [2]), ("id:>3", [4, 5]),
        ("id:2..3 -is:later", [2]),
        ("id:2 OR id:=4", [2, 4]), ("-id:<=4", [5]), ("attempts:>=1", [1, 2, 3]), ("-attempts:1", [4, 5]),
        ("holder:THUMBS", [2]), ("holder:thumbs*", [2]), ("holder:=thumbs", []), ("size:>40", [1, 2, 3]),
        ("sent:1h", [1, 2, 3, 5]), ("is:expired type:render id:1", [1]),
        ("age:>1h", [4]), ("age:<1h", [1, 2, 3, 5]), ("age:1h..3h", [4]), ("sku/B", [2]), ("asset", [1, 2, 3, 4]),
        ('"<b>ä"', [4]), ("5%_", [1, 2, 3]), ("render is:later", [3]), ("raise", [5]), ("nothing", []),
    ],
)  # fmt: skip
def test_typed_filter_shows_its_messages(viewer: Client, typed: str, expected: list[int], order: str) -> None:
    answer = viewer.get(LIST, {"q": typed, "order": order})
    page = answer.content.decode()
    assert answer.status_code == 200
    shown = [int(number) for number in re.findall(r'messages/(\d+)/"', page)]
    assert shown == (expected if order == "number" else expected[::-1])
    assert "<b>ä" not in page
    assert "rows, which are all from there" in said(page) or "1 row, which" in said(page)
    assert ("No message fits here" in page) == (not expected)


@pytest.mark.parametrize(
    ("typed", "wrong", "why"),
    [
        ("is:gone", "is:gone", "Try is:waiting"), ("age:1h", "age:1h", "which side"),
        ("who:x", "who:x", "type:, is:, id:"),
        ("type:render (", "(", "not closed"), ("render OR", "OR", "put a term after it"),
        ("type:a headers:x", "headers:x", "no headers"), ("header.Shop.Tenant:x", "header.Shop.Tenant:x", "no headers"),
        ("-(state:dead OR is:later)", "state:dead", "has not ended"), ("died:1h", "died:1h", "has not ended"),
        ("error:Boom", "error:Boom", "has not ended"), ("kind:lease", "kind:lease", "type:render"),
        ("host:a", "host:a", "holder:"), ("queue:Sales", "queue:Sales", "one queue"), ("seq:>5", "seq:>5", "id:17"),
        ("id:a", "id:a", "no number"), ("id:9223372036854775807", "id:92", "no number"),
        ("id:3..1", "id:3..1", "before"), ("holder:", "holder:", "no name"), ('"open', "open", "not closed"),
    ],
)  # fmt: skip
def test_invalid_filter_is_refused_with_its_position(viewer: Client, typed: str, wrong: str, why: str) -> None:
    page = viewer.get(LIST, {"q": typed}).content.decode()
    assert wrong in unescape(page.split('id="mqe">')[1].split("<mark>")[1].split("</mark>")[0])
    assert why in said(page)
    assert "Nothing was looked for" in page
    assert "holder: attempts:" in page
    assert not re.findall(r'messages/(\d+)/"', page)


def test_an_address_of_before_still_finds_any_of_its_states(viewer: Client) -> None:
    answer = viewer.get(LIST, {"q": "is:locked render is:later", "order": "newest", "cols": "asset"}, follow=True)
    assert answer.redirect_chain == [(f"{LIST}?q=render+is%3Alocked+OR+is%3Alater&order=newest&cols=asset", 302)]
    assert re.findall(r'messages/(\d+)/"', answer.content.decode()) == ["3", "2"]


@pytest.mark.parametrize("order", ["number", "newest"])
def test_search_continues_after_one_pages_window(viewer: Client, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_search, "ROWS", 2)
    found, path = [], f"{LIST}?q=purge&order={order}"
    while path:
        page = viewer.get(path).content.decode()
        found += re.findall(r'messages/(\d+)/"', page)
        onward = re.search(r'rel="next" href="([^"]+)"', page)
        path = LIST + unescape(onward[1]) if onward else ""
    assert found == ["4"]


def test_filter_by_words_needs_the_read_right(viewer: Client, looked_at: Recorded) -> None:
    for typed in ("sku/B", "is:locked render", "-body:x", "(is:later OR body.asset:Sku)"):
        page = looked_at.counter.get(LIST, {"q": typed}).content.decode()
        assert escape(REFUSED) in page
        assert "Nothing was looked for" in page
        assert not re.findall(r'messages/(\d+)/"', page)
    assert re.findall(r'messages/(\d+)/"', looked_at.counter.get(LIST, {"q": "is:locked"}).content.decode()) == ["2"]
    assert "Sku" not in looked_at.counter.get(LIST).content.decode()

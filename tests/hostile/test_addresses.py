"""Addresses, cursors, searches and cookies that no page of ours makes: the page falls back, or says what is wrong."""

import re
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.test import Client

from pgqueue_admin.console import flash_cookie as said
from pgqueue_admin.console import urls
from pgqueue_admin.console.account import sign_in
from pgqueue_admin.live import topics
from tests.hostile.hostile_site import World
from tests.hostile.payloads import MARKUP, QUERIES, TURNED

SALES = "/queues/public/Billing/"
# what each page reads of its query
ASKED = {
    "/": ("w",),
    "/queues/": ("q", "kind", "sort", "schema", "off", "group"),
    SALES: ("w", "ends"),
    f"{SALES}messages/": ("after", "before", "order", "cols", "q"),
    "/archive/": ("after", "before", "q", "sort"),
    "/archive/{dead}/": ("body", "from", "trace", "q"),
    "/operations/": ("after", "before"),
    "/operations/2/": ("o", "after"),
    "/alerts/?state=resolved": ("after", "state"),
    "/alerts/mail/": ("before",),
    "/endpoints/CAPITALS/": ("edit",),
    "/messages/": ("q",),
    "/trends/": ("w", "at", "since", "until", "m", "queue", "endpoint", "type", "table", "format"),
    "/workers/1/log/": ("q",),
}
MESSAGES = f"{SALES}messages/"
NOVEMBER = "WyIyMDI2LTExLTIwIDEwOjAwOjAwOjAwMDAwMCBaIiwxXQ"
YEAR_ZERO = (
    "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzIzOjU5IiwxXQ"  # in UTC before year 1: PostgreSQL has such times, and rows may
)
CURSORS = {
    MESSAGES: {"WzFd", "Wy0xXQ"},
    "/archive/": {NOVEMBER, YEAR_ZERO},
}  # among the values, those that are one there
NUMBERS = ("0", "-1", "99999999999", "9" * 19, "9" * 30, "9" * 5_000, "٣", "1e3", "NaN", "%00")
NAMES = ("%00", "a%00b", "%FF%FE", "%ED%A0%80", "x" * 5_000, "~", "~2", "~2E~2E", "%2F", "%C0%AE%C0%AE", "..;", "%25")


@pytest.fixture(scope="module")
def client(world: World) -> Client:
    return world.client("root")


@pytest.fixture(scope="module")
def dead(world: World) -> int:
    return world.dead[0]


@pytest.mark.parametrize("page", ASKED)
def test_bad_values_fall_back(client: Client, dead: int, page: str) -> None:
    """Each value under each name: a rotation brings them all together, so that one refusal does not hide another."""
    names, path = ASKED[page], page.format(dead=dead)
    for turn in range(len(QUERIES)):
        asked = {name: QUERIES[(turn + 7 * place) % len(QUERIES)] for place, name in enumerate(names)}
        url = f"{path}{'&' if '?' in path else '?'}{urlencode(asked)}"
        answer = client.get(url, follow=True)
        assert answer.status_code in {200, 302, 404}, url
        assert answer.status_code != 404 or page == "/messages/", url


@pytest.mark.parametrize("page", [MESSAGES, "/archive/"])
@pytest.mark.parametrize("name", ["after", "before"])
def test_a_cursor_that_is_none_gives_the_first_page(client: Client, page: str, name: str) -> None:
    first = rows(client, page)
    assert len(first) >= 40
    for value in set(QUERIES) - CURSORS[page]:
        assert rows(client, page, **{name: value}) == first, value


def test_a_cursor_that_somebody_made_up_is_followed(client: Client) -> None:
    for value, number in (("WzFd", 1), ("Wy0xXQ", -1)):
        assert rows(client, MESSAGES, after=value) == rows(client, MESSAGES)
        said = client.get(f"{MESSAGES}?before={value}").content.decode()
        assert f"Nothing waits before {number}\n" in said
    newest, later = rows(client, "/archive/"), rows(client, "/archive/", after=NOVEMBER)
    assert len(newest) == len(later) == 50
    assert not set(newest) & set(later)


def rows(client: Client, page: str, **asked: str) -> list[str]:
    """The messages on the page, by seq or archive id."""
    answer = client.get(page, asked, follow=True)
    said = answer.content.decode()
    assert answer.status_code == 200
    assert "The database" not in said, asked
    return re.findall(r'<tr role="row"[^>]* (?:data-seq|id)="([^"]+)"', said)


@pytest.mark.parametrize("page", ["/", "/queues/", SALES, f"{SALES}messages/", "/archive/", "/operations/", "/alerts/"])
def test_unknown_names_are_ignored(client: Client, page: str) -> None:
    plain, more = client.get(page), client.get(f"{page}?{urlencode({'nobody': MARKUP, '': 'x', MARKUP: TURNED})}")
    assert (plain.status_code, more.status_code) == (200, 200)


@pytest.mark.parametrize("q", ["state:x", "op:²", "nofield:1", "-nofield:x", "queue:", "a OR"])
def test_a_search_that_is_not_understood_says_why_and_finds_nothing(client: Client, q: str) -> None:
    said = client.get(f"/archive/?{urlencode({'q': q})}")
    assert said.status_code == 200
    assert "Nothing was searched." in said.content.decode()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "path",
    [
        "/archive/{}/", "/archive/{}/body/", "/archive/{}/headers/", "/operations/{}/", "/alerts/{}/",
        "/alerts/mail/{}/", "/workers/{}/log/", "/messages/{}/", SALES + "messages/{}/", SALES + "messages/{}/body/",
        "/admin/pgqueue/operation/{}/change/", "/admin/pgqueue/archivedmessage/{}/change/",
        "/admin/pgqueue/operation/{}/confirm/", "/admin/auth/user/{}/change/",
    ],
)  # fmt: skip
def test_a_number_of_nothing(client: Client, path: str, number: str) -> None:
    assert client.get(path.format(number), follow=True).status_code in {200, 404}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "path",
    [
        "/queues/public/{}/", "/queues/{}/Sales/", "/queues/public/{}/ends/", "/queues/{}/{}/messages/",
        "/settings/queues/public/{}/", "/endpoints/{}/", "/messages/{}/", "/messages/?q={}", "/archive/?q={}",
        "/archive/?q=queue:{}", "/queues/?q={}", "/admin/pgqueue/archivedmessage/?q={}", "/admin/auth/user/?q={}",
        "/admin/pgqueue/archivedmessage/?queue={}", "/admin/pgqueue/operation/?state__exact={}", "/sign-in/?next={}",
        "/admin/pgqueue/endpoint/{}/change/", "/admin/django_celery_results/taskresult/?q={}", "/admin/login/?next={}",
    ],
)  # fmt: skip
def test_a_name_of_nothing(client: Client, path: str, name: str) -> None:
    assert client.get(path.format(name, name), follow=True).status_code in {200, 404}


@pytest.mark.parametrize("value", ["\\000" * 32, "../../../etc/passwd", "%00", "x" * 4_000, '{"a":1}', "\\377\\376"])
@pytest.mark.parametrize("name", ["session", "csrf", "zone", "utc", "theme", "keys", "messages", "known"])
def test_cookies_that_we_never_set(world: World, client: Client, name: str, value: str) -> None:
    ours = {"session": settings.SESSION_COOKIE_NAME, "csrf": settings.CSRF_COOKIE_NAME, "known": sign_in.COOKIE}
    name = {**ours, "messages": said.FlashCookie.cookie_name}.get(name, name)
    for path in ("/queues/", "/sign-in/"):
        cookies = "; ".join(f"{each.key}={each.value}" for each in client.cookies.values() if each.key != name)
        answer = Client().get(path, headers={"cookie": f'{cookies}; {name}="{value}"'})
        assert answer.status_code in {200, 302}


@pytest.mark.parametrize("argument", ["", "-1", "²", "٣", "9" * 30, "9" * 5_000, "1,2,x,,9" + "9" * 30, "\0", MARKUP])
def test_a_stream_of_nothing(world: World, argument: str) -> None:
    """What a stream is asked for is drawn outside any page: whatever it is, there is an answer."""
    assert urls.urlpatterns
    for name in topics._topics:
        if found := topics.find(f"{name}:{argument}"):
            topic, asked = found
            assert isinstance(dict(topic.render(asked)), dict), name


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options", "trace", "head", "post"])
def test_methods_that_pages_do_not_know(client: Client, method: str) -> None:
    for path in ("/", "/queues/", SALES, f"{SALES}messages/", "/archive/", "/alerts/", "/workers/", "/settings/"):
        answer = getattr(client, method)(path)
        assert answer.status_code == (200 if method == "head" else 405), path

"""The archive's list by age, send time and size: page by page, with the number of messages in all."""

import re
from html import unescape
from typing import Any

import pytest

from pgqueue_admin.console import pagination
from pgqueue_admin.console.archive import views
from tests.console.recorded import Recorded

ORDERS = {
    "": "died_at desc, seq desc",
    "age": "died_at desc, seq desc",
    "-age": "died_at, seq",
    "-sent": "coalesce(sent_at, '-infinity') desc, seq desc",
    "sent": "coalesce(sent_at, '-infinity'), seq",
    "-size": "coalesce(octet_length(body), -1) desc, seq desc",
    "size": "coalesce(octet_length(body), -1), seq",
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "ROWS", 70)


def page(recorded: Recorded, address: str) -> str:
    answer = recorded.operator.get(f"/archive/{address}")
    assert answer.status_code == 200
    return answer.content.decode()


def ids(html: str) -> list[int]:
    return [int(each) for each in re.findall(r'name="id" value="(\d+)"', html)]


def way(html: str, rel: str) -> str:
    found = re.search(rf'rel="{rel}" href="([^"]+)"', html)
    return unescape(found[1]) if found else ""


def walked(recorded: Recorded, address: str, rel: str = "next") -> tuple[list[list[int]], str]:
    """Follow the links; return the ids of each page and the last page's address."""
    pages, at = list[list[int]](), address
    while address:
        html, at = page(recorded, address), address
        pages.append(ids(html))
        address = way(html, rel)
    return pages, at


def of_database(recorded: Recorded, order: str, newest: int = 10_000, where: str = "true") -> list[int]:
    found = recorded.connection.all(
        f"select id from (select * from messages.message_archive where {where} order by died_at desc, seq desc"
        f" limit {newest}) as a order by {order}"
    )
    return [row.id for row in found]


@pytest.mark.parametrize("sort", ORDERS)
def test_pages_follow_each_other_there_and_back(looked_at: Recorded, sort: str) -> None:
    there, last = walked(looked_at, f"?q=&sort={sort}")
    meant = of_database(looked_at, ORDERS[sort])
    assert len(there) > 2
    assert [each for some in there for each in some] == meant
    back, _ = walked(looked_at, last, "prev")
    assert [each for some in reversed(back) for each in some] == meant


@pytest.mark.parametrize("sort", ["-sent", "size"])
def test_of_a_search_of_texts_what_it_covered_is_sorted(looked_at: Recorded, sort: str) -> None:
    there, _ = walked(looked_at, f"?q=body:OrderId&sort={sort}")
    where = "position('OrderId'::bytea in body) > 0"
    assert [each for some in there for each in some] == of_database(looked_at, ORDERS[sort], where=where)


def test_of_more_than_the_cap_the_newest_are_sorted_and_it_says_so(looked_at: Recorded, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "CAP": 100}
    html = page(looked_at, "?q=&sort=-size")
    said = " ".join(re.sub("<[^>]+>", "", html).split())
    assert "Sorted are the newest 100 of them, back to" in said
    there, _ = walked(looked_at, "?q=&sort=-size")
    assert [each for some in there for each in some] == of_database(looked_at, ORDERS["-size"], 100)
    assert "Sorted are" not in page(looked_at, "?q=&sort=-age"), "all of it, by its index"


def test_arrivals_between_pages_move_no_row(recorded: Recorded, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "CAP": 100}
    meant = of_database(recorded, ORDERS["size"], 100)
    first = page(recorded, "?q=&sort=size")
    recorded.connection.run(
        "update messages.message_archive set died_at = now() where id = any(%(ids)s::integer[])",
        {"ids": of_database(recorded, "died_at", where="id % 7 = 0")[:1]},
    )
    second = page(recorded, way(first, "next"))
    assert ids(second) == [each for each in meant[70:] if each in ids(second)]
    assert not set(ids(first)) & set(ids(second))


def test_the_head_says_how_it_is_sorted_and_a_second_press_turns_it_round(looked_at: Recorded) -> None:
    html = page(looked_at, "?q=state:dead&sort=-size&after=x")
    seg = html.split('aria-label="Sort by">')[1].split("</span>")[0]
    hrefs = [unescape(each) for each in re.findall(r'href="([^"]+)"', seg)]
    assert hrefs == ["?q=state%3Adead&sort=age", "?q=state%3Adead&sort=-sent", "?q=state%3Adead&sort=size"]
    assert re.search(r'aria-current="true">\s*Size, largest first\s*</a>', seg)
    assert re.search(r'<th[^>]*aria-sort="descending">\s*Size\s*</th>', html)
    assert html.count("aria-sort") == 1
    assert '<input type="hidden" name="sort" value="-size">' in html
    assert re.search(r'aria-sort="ascending">Sent</th>', page(looked_at, "?q=&sort=sent"))


@pytest.mark.parametrize("key", [[], ["x", 1, "y", 2], ["nan", 1, "2026-11-20 10:00:00+00", 2], ["1", 2**70, "x", 1]])
@pytest.mark.parametrize("sort", ["size", "sideways"])
def test_a_bad_sort_or_cursor_is_the_first_page_of_the_default(looked_at: Recorded, key: list[Any], sort: str) -> None:
    expected = ids(page(looked_at, f"?q=&sort={'size' if sort == 'size' else 'age'}"))
    assert ids(page(looked_at, f"?q=&sort={sort}&after={pagination.pack(*key)}")) == expected

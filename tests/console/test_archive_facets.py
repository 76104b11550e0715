"""Facets narrow an archive search: names with counts, each a link that adds or removes its term."""

import re
from html import unescape
from typing import Any

import pytest

from pgqueue_admin.archive import search_query
from pgqueue_admin.console.archive import facets, search
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.services.content_access import ALL
from tests.console.recorded import Recorded

VALUE = re.compile(
    r'<li>\s*<a href="(?P<href>[^"]+)"\s+(?P<chosen>aria-current="true" )?title="(?P<name>[^"]*)">[^<]*</a>\s*'
    r'<span class="n"><span class="fig" data-kind="(?P<kind>\w+)">(?P<count>[\d,]+)',
)


def page(recorded: Recorded, q: str, **more: str) -> str:
    answer = recorded.operator.get("/archive/", {"q": q, **more})
    assert answer.status_code == 200
    return answer.content.decode()


def values(html: str, facet: str) -> list[dict[str, Any]]:
    part = html.split(f'<ul aria-label="{facet}">')[1].split("</ul>")[0]
    return [{name: unescape(text or "") for name, text in each.groupdict().items()} for each in VALUE.finditer(part)]


def shown(html: str) -> int:
    found = re.search(r'<p class="covered">\s*<span>\s*([\d,]+)\+?\s+match', html)
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.parametrize("q", ["", "state:dead", "type:ChargeCard OR queue:Sales", "body:OrderId", "-state:retried"])
def test_each_link_finds_as_many_as_it_says(looked_at: Recorded, q: str) -> None:
    html = page(looked_at, q, facets="open")
    followed = 0
    for facet in ("Queue", "Type", "Error", "Endpoint", "State"):
        for value in values(html, facet)[:3]:
            assert value["kind"] == "counted"
            narrowed = looked_at.operator.get(f"/archive/{value['href']}").content.decode()
            if not value["chosen"]:
                assert shown(narrowed) == int(value["count"].replace(",", "")), (facet, value)
                again = [each for each in values(narrowed, facet) if each["chosen"]]
                assert [each["name"] for each in again] == [value["name"]]
                followed += 1
    assert followed > 5


def test_counts_are_those_of_the_database_and_the_most_come_first(looked_at: Recorded) -> None:
    counted = looked_at.connection.all(
        "select message_type as name, count(*) as number from messages.message_archive where state = 'dead'"
        " group by 1 order by 2 desc, 1"
    )
    found = values(page(looked_at, "state:dead", facets="open"), "Type")
    assert [(each["name"], int(each["count"])) for each in found] == [(row.name or "", row.number) for row in counted][
        :6
    ]


def test_a_chosen_one_is_taken_away_again(looked_at: Recorded) -> None:
    (dead,) = values(page(looked_at, "state:dead type:ChargeCard", facets="open"), "State")
    assert dead["chosen"]
    assert dead["href"] == "?q=type%3AChargeCard&facets=open#narrow"
    (only,) = values(page(looked_at, "state:dead", facets="open"), "State")
    assert only["href"] == "?q=&facets=open#narrow", "not the address without q, which asks for the dead"


def test_closed_they_cost_nothing_and_are_one_link_away(looked_at: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facets, "read", None)
    html = page(looked_at, "state:dead")
    assert 'href="?q=state%3Adead&amp;facets=open#narrow"' in html
    assert "<h2" not in html.split('class="covered"')[1].split("<table")[0]


def test_facets_over_the_cap_say_at_least(looked_at: Recorded, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "CAP": 50}
    html = page(looked_at, "", facets="open")
    assert "Counted in the newest 50 that match; there are older ones." in " ".join(html.split())
    assert {each["kind"] for each in values(html, "State")} == {"capped"}


def test_the_part_fails_alone(looked_at: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> Any:
        raise TimedOut("canceling statement due to statement timeout")

    monkeypatch.setattr("pgqueue_admin.archive.store.facets", slow)
    html = page(looked_at, "state:dead", facets="open")
    assert "The filters were not counted." in html
    assert 'name="id"' in html


def test_facets_over_their_time_limit_are_not_counted(looked_at: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facets' own time limit, not the page's."""
    monkeypatch.setattr(facets, "SECONDS", 0.0)
    html = page(looked_at, "state:dead", facets="open")
    assert "The filters were not counted." in html
    assert 'name="id"' in html


def test_names_that_others_wrote_stay_text_and_are_found(recorded: Recorded) -> None:
    names = ['<script>"x" OR (y)', "a\u202eb", "=*", "", "Shop.Same", "Other.Same"]
    ids = recorded.dead(len(names))
    for id, name in zip(ids, names, strict=True):
        recorded.connection.run(
            "update messages.message_archive set message_type = %(name)s, exception_type = %(name)s,"
            " endpoint = %(name)s, queue = %(name)s where id = %(id)s",
            {"name": name or None, "id": id},
        )
    html = page(recorded, "id:=x OR state:dead", facets="open")
    assert "<script>&quot;" not in html
    assert "\u202e" not in html
    for name in names:
        narrowed = search.read(search_query.exactly("type", name), ALL)
        found, trouble = facets.read(narrowed.filter, narrowed.filter)
        assert trouble is None
        assert found is not None
        assert found.messages == (1 if name else found.messages)
        for facet in found.facets:
            for each in facet.values:
                assert not each.q or search.read(each.q, ALL).error is None, (facet.word, each)
    both = search.read("type:Same", ALL).filter
    found, _ = facets.read(both, both)
    assert found
    types = next(facet for facet in found.facets if facet.word == "Type")
    assert [each.word for each in types.values] == ["Other.Same", "Shop.Same"], "whole where two are the same"

"""Any table name survives the way into a path and back (C3, bad input)."""

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hypothesis import assume, example, given
from hypothesis import strategies as st

from pgqueue_admin.archive import search_query
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.console import pagination, url_converters
from pgqueue_admin.console.archive import search
from pgqueue_admin.services.content_access import ALL

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=55)


@given(NAMES)
@example("..")
@example(".")
@example("~2F/~7E")
@example('Zażółć "gęślą" queue')
@example("<script>alert(1)</script>")
@example("a/b.c~d")
def test_a_name_survives_the_path(name: str) -> None:
    segment = url_converters.encode(name)
    assert url_converters.decode(segment) == name
    assert "/" not in segment
    assert not segment.startswith(".")


@given(NAMES)
@example("System.Data.\u00a0Odd")
@example("two\twords")
@example('say "hi" \\ *')
@example("=Boom")
@example("Boom*")
@example('"')
@example("a" * 399)
@example("x " * 2500)
def test_a_cause_survives_the_way_into_the_archive(cause: str) -> None:
    assume(cause not in search.RESULTS)  # a lease message without an exception is named by its result
    asked = parse_qs(urlsplit(url_converters.dead("Billing", cause)).query)["q"][0]
    found = search.read(asked.replace("queue:Billing", ""), ALL).filter  # the database resolves a queue's name
    whole = len(cause) < 400
    assert found == ArchiveFilter(
        state="dead", exception_is=cause if whole else None, exception_from="" if whole else cause
    )


FILTERS = st.builds(
    ArchiveFilter,
    state=st.sampled_from(["", *search.STATES]),
    result=st.sampled_from(["", *search.RESULTS]),
    endpoint=st.just("") | NAMES,
    message_id=st.just("") | NAMES,
    words=st.lists(NAMES, max_size=2).map(tuple),
    headers=st.lists(NAMES, max_size=2).map(tuple),
    bodies=st.lists(NAMES, max_size=2).map(tuple),
    operation=st.none() | st.integers(1, 10**9),
)


@given(FILTERS, st.sampled_from(["", "_is", "_from"]), NAMES, st.sampled_from(["", "_is", "_from"]), NAMES)
def test_a_filter_that_is_written_is_read_again(
    asked: ArchiveFilter, one: str, type_: str, other: str, error: str
) -> None:
    names: dict[str, Any] = {f"type{one}": type_, f"exception{other}": error}
    asked = replace(asked, **names)
    query = search.read(search_query.written(asked), ALL)
    assert (query.error, query.filter) == (None, asked)


@given(st.lists(st.one_of(st.integers(), st.text(), st.none()), max_size=4))
def test_a_cursor_gives_its_key_back(key: list[int | str | None]) -> None:
    cursor = pagination.pack(*key)
    assert pagination.unpack(cursor) == key
    assert cursor.replace("-", "").replace("_", "").isalnum()


@given(st.text())
def test_invalid_cursor_is_none_and_no_error(text: str) -> None:
    key = pagination.unpack(text)
    assert key is None or isinstance(key, list)


def test_a_cursor_of_one_number() -> None:
    assert pagination.integer(pagination.pack(88_141_900)) == 88_141_900
    assert pagination.integer(pagination.pack("x")) is None
    assert pagination.integer(None) is None

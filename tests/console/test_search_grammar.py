"""The search grammar: any text is run, or refused with the position of its fault; written searches parse again."""

from dataclasses import replace
from time import perf_counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgqueue_admin.archive import search_query, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Excluded, Span, Term
from pgqueue_admin.console.archive import fields, search, tokens
from pgqueue_admin.models import FailureGroup
from pgqueue_admin.services.content_access import ALL
from tests.console.recorded import Recorded

VALUES = [
    "Billing",
    "a b",
    "=x",
    "x*",
    '"',
    "(",
    ")",
    "-1",
    ">=3",
    "2h",
    "1mb",
    "yesterday",
    "2026-11-20",
    "..",
    "418/skipped",
]
WORDS = st.sampled_from(["state:dead", "-kind:control", "OR", "(", ")", "-", '"', "word", "AND", " ", "%", "\\", "é"])
TERMS = st.builds(
    "{}:{}".format,
    st.sampled_from([*fields.NAMES, "header.Tenant", 'body."a b".0', "body..x", "nothing"]),
    st.sampled_from(VALUES) | st.text(max_size=8),
)
TYPED = st.lists(TERMS | WORDS | st.text(max_size=6), max_size=9).flatmap(
    lambda parts: st.sampled_from([" ".join(parts), "".join(parts)])
)


@given(TYPED)
@example("(" * 5_000)
@example("-(" * 9 + "a" + ")" * 9)
@example("died:9999-12-30 sent:0001-01-01 age:>36600d attempts:999999999 size:>999999gb")
@example("died:9999-12-31")
@example("size:>999999999999gb")
@example("age:>36601d")
@example("died:2026-11-20T10:00-14:00 since:0001-01-01T00:00+14:00")
@example("body.a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t:x")
@example('header."***:(?i)":x header."\\":"\\')
@example("op:9223372036854775807 op:9223372036854775807/skipped")
def test_any_text_is_searched_or_refused_with_its_place(looked_at: Recorded, typed: str) -> None:
    query = search.read(typed, ALL)
    if query.error:
        assert query.error.why
        assert 0 <= query.error.start <= query.error.end <= len(query.text)
        assert query.filter == ArchiveFilter()
        return
    if query.filter.reads_json and looked_at.connection.raw.info.server_version < 160_000:
        return
    found = store.page(looked_at.connection, query.filter, limit=5).messages
    written = search_query.written(query.filter)
    again = search.read(written, ALL)
    assert again.error is None, written
    assert again.filter == query.filter, written
    assert [each.id for each in store.page(looked_at.connection, again.filter, limit=5).messages] == [
        each.id for each in found
    ]


HOW = st.sampled_from(["has", "is", "starts"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
LEAVES = (
    st.builds(Term, st.just(""), TEXTS)
    | st.builds(Term, st.sampled_from(["type", "error"]), TEXTS, HOW)
    | st.builds(Term, st.sampled_from(["endpoint", "host", "conversation"]), TEXTS, st.sampled_from(["is", "starts"]))
    | st.builds(Term, st.just("message"), TEXTS, HOW)
    | st.builds(Term, st.sampled_from(["headers", "body"]), TEXTS)
    | st.builds(Term, st.just("header"), TEXTS, st.sampled_from(["has", "is"]), st.tuples(TEXTS))
    | st.builds(
        Term,
        st.just("body"),
        TEXTS,
        st.sampled_from(["has", "starts"]),
        st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    )
    | st.builds(Term, st.just("state"), st.sampled_from(fields.STATES), st.just("is"))
    | st.just(Span("died", "age:>1h", None, 3600.0))
)
NODES = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(Excluded, inner)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(AllOf)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(AnyOf)
    ),
    max_leaves=8,
)


@given(st.lists(NODES, min_size=1, max_size=2).map(tuple))
def test_a_tree_that_is_written_is_read_again(looked_at: Recorded, nodes: tuple[Term, ...]) -> None:
    once = search.read(search_query.written(ArchiveFilter(state="", also=nodes)), ALL)
    if once.error:
        assert "is there already" in once.error.why or "takes at most" in once.error.why
        return
    again = search.read(search_query.written(once.filter), ALL)
    assert (again.error, again.filter) == (None, once.filter)


@pytest.mark.parametrize(
    ("typed", "start", "end", "why"),
    [
        ("state:dead age:>1hh x", 11, 19, "1hh is no duration. Try 1h, 90m, 2d."),
        ("a (b OR) c", 7, 8, "put a term before it."),
        ("a OR", 2, 4, "put a term after it."),
        ("OR a", 0, 2, "it stands between two terms."),
        ("a OR OR b", 5, 7, "it stands between two terms."),
        ("(a", 0, 1, "this bracket is not closed."),
        ("(a))", 3, 4, "it closes no bracket."),
        ("()", 1, 2, "put a term before it."),
        ('a "b c', 2, 6, "this quotation mark is not closed."),
        ("a - b", 2, 3, "put what is excluded right after it"),
        ("a AND b", 2, 5, "every term must hold anyway."),
        ("size:big", 0, 8, "big is no size. Try >1mb"),
        ("attempts:5..3", 0, 13, "3 is before 5."),
        ("age:1h", 0, 6, "age:<1h is younger, age:>1h is older."),
        ("died:>2h", 0, 8, "could mean two things."),
        ("op:4/left", 0, 9, "418/skipped"),
        ("Timeout*", 0, 8, "Leave the *"),
        ("colour:red", 0, 10, "There is no field colour:."),
    ],
)
def test_search_error_has_its_position(looked_at: Recorded, typed: str, start: int, end: int, why: str) -> None:
    error = search.read(typed, ALL).error
    assert error is not None
    assert (error.start, error.end) == (start, end)
    assert why in error.why


def test_or_joins_its_neighbours_and_widens_nothing_else(looked_at: Recorded) -> None:
    query = search.read("state:dead type:A OR type:B", ALL)
    assert query.filter == ArchiveFilter(state="dead", also=(AnyOf((Term("type", "A"), Term("type", "B"))),))
    assert search.read("(state:dead type:A) OR type:B", ALL).filter.state == ""


@pytest.mark.parametrize(
    ("typed", "low", "high"),
    [
        ("died:2026-11-19", "2026-11-19T00:00:00+00:00", "2026-11-20T00:00:00+00:00"),
        ("died:2026-11-19..2026-11-20", "2026-11-19T00:00:00+00:00", "2026-11-21T00:00:00+00:00"),
        ("died:>2026-11-19", "2026-11-20T00:00:00+00:00", None),
        ("died:<=2026-11-19T09:30+01:00", None, "2026-11-19T08:31:00+00:00"),
        ("died:2h", 7200.0, None),
        ("died:3d..2h", 259_200.0, 7200.0),
        ("age:<90m", 5400.0, None),
        ("age:1h..2d", 172_800.0, 3600.0),
        ("attempts:3", 3, 4),
        ("attempts:>3", 4, None),
        ("size:>=1.5kb", 1500, None),
        ("size:1kb..1mb", 1000, 1_000_001),
    ],
)
def test_amounts_and_times(looked_at: Recorded, typed: str, low: object, high: object) -> None:
    (span,) = search.read(typed, ALL).filter.also
    assert isinstance(span, Span)
    assert (span.low, span.high) == (low, high)


def test_an_owner_stands_for_failures(recorded: Recorded) -> None:
    look = recorded.connection
    fingerprint = look.value("select fingerprint from messages.message_archive where state = 'dead' limit 1")
    FailureGroup.objects.create(pk=fingerprint, owner="Ana B")
    query = search.read('owner:"Ana B"', ALL)
    assert query.error is None
    assert store.count(look, query.filter, 10_000) == store.count(
        look, search.read(f"fp:{fingerprint}", ALL).filter, 10_000
    )
    assert store.count(look, search.read("owner:nobody-known", ALL).filter, 10).number == 0


def test_a_long_search_is_read_in_linear_time_or_refused(looked_at: Recorded) -> None:
    for typed in (
        "header." + '"' * 5_000 + "x",
        'body."' + '""' * 4_000,
        "a" * tokens.MOST_LETTERS,
        '"' * tokens.MOST_LETTERS,
        "(" * tokens.MOST_LETTERS,
        "a(" * 5_000,
    ):
        started = perf_counter()
        search.read(typed, ALL)
        assert perf_counter() - started < 1.0
    error = search.read("a" * (tokens.MOST_LETTERS + 1), ALL).error
    assert error is not None
    assert "at most 10,000" in error.why


def test_a_state_within_brackets_leaves_acts_to_what_they_can_act_on(looked_at: Recorded) -> None:
    query = search.read("state:dead OR state:discarded", ALL)
    assert query.filter.state == ""
    assert replace(query.filter, state="dead").also == query.filter.also

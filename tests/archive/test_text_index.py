"""The text index finds what reading row by row finds, whatever messages contain; and how it is built."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from pgqueue_admin.archive import export_reader, indexed_texts, schema, store, text_index, text_search
from pgqueue_admin.archive.errors import IndexRefused
from pgqueue_admin.archive.indexed_texts import NARROW, WIDE
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Excluded, Lane, Node, Span, Term
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.databases import Databases
from tests.explain import executed

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LARGE = b"x" * 250_001 + b"wanted"
BODIES = [
    b"order 4711", b"ORDER 4711", b"100%_sure", b"100xysure", rb"C:\temp\new", rb"a\\b", rb"\000\141bc", b"a\0bc",
    b"\xff\xfeabc\x80def", "Größe 12 Straße".encode(), "GRÖSSE".encode(), "\u212aelvin \u0130stanbul".encode(),
    "abc".encode("utf-16"), b"abc\r\ndef\tghi", b"'; drop table x; --", b"", b"ab", b"pgqueue0large0message",
    "\N{GRINNING FACE}abc\u202edef".encode(), b'{"a":"\\u0041bc","b":"x%y"}', b"abcabcabcabc", b"a-b-c-d 12-34",
]  # fmt: skip
HEADERS = [
    '{"Tenant":"raven%hill_1"}', '{"Tenant":"raven\\u0000hill"}', '{"Tenant":"a\\"b\\\\c4711d"}',
    '{"Tenant":"Gr\\u00f6\\u00dfe123"}',
    '{"Tenant":"Größe123"}', '{"Tenant":"\u212aelvin"}',
    '{"NServiceBus.ConversationId":"11d5c0ff-eeee-4711-aaaa-0123456789ab"}',
    '{"broken', "null", None,
]  # fmt: skip
ERRORS = [
    "Card 4711 refused",
    "card %_\\ refused",
    "ΣΊΣΥΦΟΣ order",
    "\u212aelvin",
    "\u0130stanbul",
    "line\nbreak",
    None,
]
WORDS = [
    "4711", "order", "ORDER", "oRdEr 4711", "%_s", "100%_sure",
    "100%", "_sure", "\\temp\\new", "a\\b", "\\\\", "\\000", "abc",
    "ABC", "def", "Größe", "GRÖSSE", "größe123", "elvin", "kelvin", "Kelvin",
    "\u212aelvin", "istanbul", "\u0130stanbul",
    "stanbul", "\r\ndef", "drop table", "'; drop", "ab", "a", "%", "_",
    "pgqueue0large0message", "wanted", "\N{GRINNING FACE}abc",
    "\\u0041bc", "x%y", "cabca", "12-34", "raven%hill",
    "u0000", "Tenant", "11d5c0ff-eeee-4711-aaaa-0123456789ab", "refused",
    "ΣΊΣΥΦΟΣ", "σίσυφοσ order", "line\nbreak", "Shop.Type", "msg-7", "nothing-has-this", "\x01abc",
]  # fmt: skip


def terms() -> Iterator[tuple[str, Node]]:
    for word in WORDS:
        for field in ("", "message", "headers", "body"):
            yield f"{field}:{word!r}", Term(field, word)
        for how in ("has", "is", "starts"):
            yield f"header.Tenant {how} {word!r}", Term("header", word, how, ("Tenant",))
            yield f"message {how} {word!r}", Term("message", word, how)
        yield f"conversation {word!r}", Term("conversation", word, "is")
        yield f"-{word!r}", Excluded(Term("body", word))
        yield f"{word!r} or 4711", AnyOf((Term("body", word), Term("headers", "4711")))
        yield f"{word!r} and refused", AllOf((Term("", word), Term("message", "refused")))
        yield f"{word!r} or a type", AnyOf((Term("", word), Term("type", "Type3")))
        yield f"{word!r} and not", AllOf((Term("", word), Excluded(Term("body", "4711"))))


def fill(connection: Connection) -> None:
    store.archive_failed(connection, DeadMessage(queue="q", headers="{}", body=LARGE))
    place = 0
    for body in BODIES:
        for headers in HEADERS:
            error = ERRORS[place % len(ERRORS)]
            message = DeadMessage(
                queue="q",
                result="failed" if place % 3 else "success",
                message_id=f"msg-{place}",
                message_type=f"Shop.Type{place % 5}",
                headers=headers,
                body=None if place % 31 == 30 else body,
                exception_type="Shop.Boom" if error else None,
                exception_message=error,
                died_at=NOW - timedelta(minutes=place),
            )
            store.archive_failed(connection, message)
            place += 1
    connection.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, kind)
        select pg_catalog.now(), said::jsonb, 'failed', 'w', 'lease' from pg_catalog.unnest(%(said)s::text[]) said""",
        {"said": ['{"no": "4711", "x": "100%_sure"}', '["Größe abc", "C:\\\\temp\\\\new"]', '"\u212aelvin"', "4711"]},
    )


@pytest.fixture(scope="module", params=["libc", "another provider"])
def indexed(request: pytest.FixtureRequest, databases: Databases, server: PostgreSQL) -> Iterator[Connection]:
    """Once per collation provider: it decides case folding, and the index folds as the C library does."""
    with ExitStack() as stack:
        dsn = stack.enter_context(databases.clone("engine"))
        if request.param != "libc":
            dsn = stack.enter_context(of_another_provider(server))
        connection = stack.enter_context(postgresql().connect(dsn))
        if request.param != "libc":
            schema.install(connection)
        fill(connection)
        text_index.build(connection)
        connection.run("set enable_seqscan = off")  # for so few messages the planner would read the table
        yield connection


@contextmanager
def of_another_provider(server: PostgreSQL) -> Iterator[str]:
    with postgresql().connect(server.dsn("postgres")) as admin:
        has_builtin = admin.raw.info.server_version >= 170_000
        other = "builtin builtin_locale 'C.UTF-8'" if has_builtin else "icu icu_locale 'tr'"
        admin.run(f"create database of_another_provider template template0 locale_provider {other} locale 'C'")
        yield server.dsn("of_another_provider")
        admin.run("drop database of_another_provider with (force)")


def test_the_index_is_what_is_asked_here(indexed: Connection) -> None:
    asked = ArchiveFilter(state="", also=(Term("", "4711"),), window=(Lane(WIDE),))
    plan = executed(indexed, postgresql().archive.ids(**store.matching(asked)), asked.params())
    assert "message_archive_text" in plan.indexes, plan


def by_rows(connection: Connection, asked: ArchiveFilter) -> list[int]:
    looked = text_search.look_for(connection, asked.columns, asked.texts, (Lane("all"),))
    assert looked.is_whole
    return sorted(looked.ids)


def test_index_finds_what_reading_row_by_row_finds(indexed: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "SECONDS", 60.0)
    used, found, wrong = 0, 0, []
    for name, node in terms():
        asked = ArchiveFilter(state="", also=(node,))
        if not asked.reads_rows:
            continue
        looked = text_search.look_through(indexed, asked)
        used, found = used + looked.is_by_index, found + bool(looked.is_by_index and looked.ids)
        if sorted(looked.ids) != by_rows(indexed, asked):
            wrong.append(name)
    assert wrong == []
    assert used > 200, used
    assert found > 100, found


@pytest.mark.parametrize("lane", [WIDE, NARROW])
def test_a_window_of_the_index_finds_the_same_again(indexed: Connection, lane: str) -> None:
    asked = ArchiveFilter(state="dead", also=(Term("", "4711"),))
    within = ArchiveFilter(state="dead", also=(Term("", "4711"),), window=(Lane(lane),))
    assert sorted(store.ids(indexed, within)) == by_rows(indexed, asked) != []
    beside = ArchiveFilter(state="dead", also=(Term("body", "%"),), window=(Lane(lane),))
    assert store.ids(indexed, beside) == ()  # no caller was told that the index helps here


def test_letters_that_only_some_locales_fold_are_left_to_the_comparison() -> None:
    assert indexed_texts.helps(Term("", "kelvin"), WIDE)
    assert indexed_texts.helps(Term("", "kelvinator"), NARROW)
    assert not indexed_texts.helps(Term("", "kik4k"), NARROW)
    assert not indexed_texts.helps(Term("", "ab-cd"), WIDE)
    assert not indexed_texts.helps(Term("body", "4711", "is", ("no",)), WIDE)


MORE: list[dict[str, Any]] = [
    {"state": "succeeded"},
    {"type": "Type3"},
    {"also": (Span("attempts", "", 3, None),)},
]


@pytest.mark.parametrize("more", MORE)
def test_other_terms_hold_as_before(indexed: Connection, more: dict[str, Any]) -> None:
    asked = ArchiveFilter(**{"state": "", "bodies": ("4711",), **more})
    looked = text_search.look_through(indexed, asked)
    assert looked.is_by_index
    assert sorted(looked.ids) == by_rows(indexed, asked)


@pytest.mark.parametrize("within", [(), ("other",), ("q",)])
def test_search_within_a_queue_scope_uses_windows_not_the_index(indexed: Connection, within: tuple[str, ...]) -> None:
    """The index reads texts of all queues: its time would reveal what other queues hold."""
    asked = ArchiveFilter(state="", bodies=("4711",), within=within)
    looked = text_search.look_through(indexed, asked)
    assert not looked.is_by_index
    assert sorted(looked.ids) == by_rows(indexed, asked)
    assert bool(looked.ids) is (within == ("q",))


def test_a_file_of_what_the_index_found_is_as_one_read_in_windows(
    indexed: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_reader, "ROWS", 30)
    asked = ArchiveFilter(state="dead", also=(Term("", "4711"), Excluded(Term("type", "Type3"))))
    by_index = walked(indexed, asked)
    looks: list[Any] = []
    monkeypatch.setattr(text_search, "by_index", lambda *about: looks.append(about))
    assert by_index == walked(indexed, asked) == [row.id for row in store.page(indexed, asked, limit=500).messages]
    assert len(by_index) > 40
    assert len(looks) == 1


def walked(connection: Connection, asked: ArchiveFilter) -> list[int]:
    found, walking = list[int](), export_reader.ArchiveWalk(asked)
    while not walking.is_over:
        found += [row.id for row in walking.read(connection)]
    return found


def test_a_word_that_too_many_have_is_looked_for_in_windows(
    indexed: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ArchiveFilter(state="", also=(Term("", "4711"),))
    number = text_search.look_through(indexed, asked).lanes[0].read
    monkeypatch.setattr(text_search, "BY_INDEX", number)
    assert text_search.look_through(indexed, asked).is_by_index
    monkeypatch.setattr(text_search, "BY_INDEX", number - 1)
    looked = text_search.look_through(indexed, asked)
    assert not looked.is_by_index
    assert sorted(looked.ids) == by_rows(indexed, asked)


def test_where_the_index_takes_too_long_windows_answer(indexed: Connection) -> None:
    class Late:
        def one(self, query: Any, params: Any) -> Any:
            if "most" in params:
                raise TimedOut("canceling statement due to statement timeout")
            return indexed.one(query, params)

        def __getattr__(self, name: str) -> Any:
            return getattr(indexed, name)

    asked = ArchiveFilter(state="", also=(Term("", "4711"),))
    looked: Any = text_search.look_through(Late(), asked)  # type: ignore[arg-type]
    assert not looked.is_by_index
    assert sorted(looked.ids) == by_rows(indexed, asked)


Connect = Callable[..., Connection]
ASKED = ArchiveFilter(state="", bodies=("wanted",))


def test_index_is_built_used_and_dropped_once(engine: Connection) -> None:
    store.archive_failed(engine, DeadMessage(queue="q", body=b"wanted"))
    assert not text_index.facts(engine).is_there
    assert not text_search.look_through(engine, ASKED).is_by_index
    text_index.build(engine)
    found = text_index.facts(engine)
    assert (found.is_valid, found.home) == (True, "messages")
    assert text_search.look_through(engine, ASKED).is_by_index
    assert text_index.drop(engine)
    assert not text_index.drop(engine)
    assert not text_search.look_through(engine, ASKED).is_by_index
    assert text_search.still_covers(engine, (Lane("all"),))
    assert not text_search.still_covers(engine, (Lane(WIDE),))


def test_invalid_index_of_a_cut_build_is_unused_and_rebuilt(engine: Connection) -> None:
    store.archive_failed(engine, DeadMessage(queue="q", body=b"wanted"))
    text_index.build(engine)
    engine.run("update pg_index set indisvalid = false where indexrelid = 'messages.message_archive_text'::regclass")
    found = text_index.facts(engine)
    assert (found.is_there, found.is_valid) == (True, False)
    looked = text_search.look_through(engine, ASKED)
    assert (looked.is_by_index, len(looked.ids)) == (False, 1)
    assert store.ids(engine, ArchiveFilter(state="", bodies=("wanted",), window=(Lane(WIDE),))) == ()
    text_index.build(engine)
    assert text_index.facts(engine).is_valid
    assert text_search.look_through(engine, ASKED).is_by_index


def test_a_build_that_is_cut_leaves_one_that_the_next_replaces(
    engine: Connection, engine_database: str, connect: Connect
) -> None:
    """Another session's transaction blocks the build until its timeout."""
    store.archive_failed(engine, DeadMessage(queue="q", body=b"wanted"))
    builder = connect(engine_database)
    builder.run("set statement_timeout = '500ms'")
    with engine.transaction():
        engine.run("update messages.message_archive set details = 'x'")
        with pytest.raises(TimedOut):
            text_index.build(builder)
    found = text_index.facts(engine)
    assert (found.is_there, found.is_valid) == (True, False)
    builder.run("set statement_timeout = 0")
    text_index.build(builder)
    assert text_index.facts(engine).is_valid


def test_two_do_not_build_at_once(engine: Connection, engine_database: str, connect: Connect) -> None:
    other = connect(engine_database)
    other.run("select pg_advisory_lock(7217463802136)")
    for act in (text_index.build, text_index.drop):
        with pytest.raises(IndexRefused, match="another session builds or drops"):
            act(engine)
    other.run("select pg_advisory_unlock_all()")
    text_index.build(engine)


def test_its_cost_is_estimated_of_a_sample_and_nothing_is_left(engine: Connection) -> None:
    fill(engine)
    cost = text_index.cost(engine)
    number = len(BODIES) * len(HEADERS) + 5
    assert (cost.messages, cost.sampled) == (number, number)
    assert cost.seconds > 0
    assert not text_index.facts(engine).home
    assert not engine.value("select to_regclass('pg_temp.text_sample') is not null")
    text_index.build(engine)
    assert cost.bytes == pytest.approx(text_index.facts(engine).index_bytes, rel=0.3)


def test_a_sample_copies_no_large_message_whole(engine: Connection) -> None:
    for seed in range(5):
        body = Random(seed).randbytes(2_000_000)
        store.archive_failed(engine, DeadMessage(queue="q", headers="{}", body=body))
    sql = postgresql().text_index
    with engine.transaction():
        engine.run(sql.make_sample())
        assert engine.run(sql.sample(), {"percent": 100.0, "most": 100}) == 5
        assert engine.value("select pg_total_relation_size('pg_temp.text_sample')") < 5 * 400_000
        held = f"select count(*) from pg_temp.text_sample where {sql.document.text} = 'pgqueue0large0message'"
        assert engine.value(held) == 5


def test_of_many_messages_a_few_blocks_are_read(engine: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_index, "BLOCKS", 60)
    monkeypatch.setattr(text_index, "MESSAGES", 500)
    engine.run("alter table messages.message_archive disable trigger user")
    engine.run(
        """insert into messages.message_archive (
            created_at, message, result, handled_by, kind, queue, message_id, headers, body)
        select pg_catalog.now(), '{}', 'failed', 'w', 'transport', 'q', concat('m-', i),
            concat('{"id":"', md5(i::text), '"}'),
            convert_to(concat('{"no":"', md5(concat('x', i)), '","of":"a customer"}'), 'UTF8')
        from pg_catalog.generate_series(1, 20000) i"""
    )
    cost = text_index.cost(engine)
    assert cost.sampled == 500
    assert cost.messages == pytest.approx(20_000, rel=0.4)
    text_index.build(engine)
    assert cost.bytes == pytest.approx(text_index.facts(engine).index_bytes, rel=0.8)


def as_role(connection: Connection, name: str, *grants: str) -> None:
    connection.run(f"drop role if exists {name}")
    connection.run(f"create role {name}")
    for grant in grants:
        connection.run(grant)
    connection.run(f"set role {name}")


OWNS = "alter table messages.message_archive owner to indexer"


def test_a_role_that_does_not_own_the_archive_is_refused(engine: Connection) -> None:
    with engine.transaction():
        as_role(engine, "indexer", "grant usage on schema messages to indexer")
        with pytest.raises(IndexRefused, match=r"messages\.message_archive is \w+'s, and indexer may not index it\."):
            text_index.refuse(text_index.facts(engine))
        engine.run("reset role; drop owned by indexer; drop role indexer")


def test_a_role_that_may_not_install_the_extension_is_told_who_may(engine: Connection) -> None:
    with engine.transaction():
        as_role(engine, "indexer", "grant usage, create on schema messages to indexer", OWNS)
        with (
            pytest.raises(
                IndexRefused, match=r"indexer may not install it\. Whoever may: create extension pg_trgm schema"
            ),
            engine.transaction(),
        ):
            text_index.cost(engine)
        engine.run("reset role; alter table messages.message_archive owner to current_user")
        engine.run("drop owned by indexer; drop role indexer")


def test_extension_is_refused_in_a_schema_where_others_may_create(engine: Connection) -> None:
    engine.run("grant create on schema messages to public")
    with pytest.raises(IndexRefused, match="revoke create on schema messages"):
        text_index.refuse(text_index.facts(engine))
    engine.run("create extension pg_trgm schema messages")
    text_index.refuse(text_index.facts(engine))
    assert "installed in schema messages, where others may create" in text_index.others_create(text_index.facts(engine))
    engine.run("revoke create on schema messages from public")
    assert text_index.others_create(text_index.facts(engine)) == ""


def test_extension_in_another_schema_is_used_without_its_names(engine: Connection) -> None:
    """Another user adds a function of each name next to the extension's: none of them runs."""
    engine.run("create schema theirs; grant create on schema theirs to public; create extension pg_trgm schema theirs")
    engine.run(
        """create function theirs.similarity(text, anyelement) returns real language plpgsql
            as $$ begin raise 'ran'; end $$;
        create function theirs.similar_to(text, text) returns boolean language plpgsql as $$ begin raise 'ran'; end $$;
        create operator theirs.~~* (leftarg = text, rightarg = text, function = theirs.similar_to)"""
    )
    store.archive_failed(engine, DeadMessage(queue="q", body=b"wanted"))
    text_index.build(engine)
    assert text_index.facts(engine).home == "theirs"
    assert len(text_search.look_through(engine, ASKED).ids) == 1


def test_without_an_archive_it_says_what_to_do(connection: Connection) -> None:
    with pytest.raises(IndexRefused, match=r"run manage\.py engine_schema first"):
        text_index.facts(connection)


def test_a_large_message_is_archived_and_found(engine: Connection) -> None:
    text_index.build(engine)
    for body, headers in (
        (LARGE, "{}"),
        (b"\0" * 249_990 + b"wanted", ""),
        (b"", '{"a":"' + "wanted" * 200_000 + '"}'),
    ):
        store.archive_failed(engine, DeadMessage(queue="q", body=body, headers=headers))
    looked = text_search.look_through(engine, ArchiveFilter(state="", also=(Term("", "wanted"),)))
    assert looked.is_by_index
    assert len(looked.ids) == 3

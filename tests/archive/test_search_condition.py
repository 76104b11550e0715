"""Each search term matches what it says and nothing else, whatever messages contain."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Excluded, Node, Span, Term
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import ServerTooOld

DEEP = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
BODIES = {
    "utf-8": '{"order": {"no": "4711", "name": "Käufer", "lines": [{"sku": "a-1"}]}, "n": 12.50, "on": true}'.encode(),
    "escaped": b'{"order": {"no": "4712", "name": "K\\u00e4ufer", "path": "c:\\\\x"}}',
    "byte order mark": b'\xef\xbb\xbf{"order": {"no": "4713"}}',
    "latin-1": b'{"order": {"no": "4714", "name": "K\xe4ufer"}}',
    "utf-16": '{"order": {"no": "4715"}}'.encode("utf-16"),
    "deep": DEEP,
    "cut": b'{"order": {"no": "4711',
    "no json": b"4711",
    "nul": b'{"order": {"no": "\\u0000"}}',
    "bytes": bytes(range(256)),
    "control": b'{"order": {"no": "4711\x01"}, "x": "y"}',
    "large": b'{"order": {"no": "4711"}, "pad": "' + b"x" * 1_000_000 + b'"}',
    "list": b'[{"no": "4711"}]',
    "none": None,
}


@pytest.fixture
def bodies(engine: Connection) -> Connection:
    for name, body in BODIES.items():
        store.archive_failed(engine, DeadMessage(queue="q", message_id=name, body=body))
    engine.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        """ values (now(), '{"order": {"no": "4711", "name": "Käufer"}}', 'failed', 'worker')"""
    )
    return engine


def found(connection: Connection, *nodes: Node) -> list[str]:
    """Return message ids; ``""`` for a lease message."""
    asked = ArchiveFilter(state="", also=nodes)
    rows = store.page(connection, asked, limit=100).messages
    assert store.count(connection, asked, 1_000).number == len(rows)
    return sorted(row.message_id or "" for row in rows)


def is_old(connection: Connection, *nodes: Node) -> bool:
    """Return whether the server is older than 16, after checking that it refuses what it could not try safely."""
    if connection.raw.info.server_version >= 160_000:
        return False
    with pytest.raises(ServerTooOld, match="PostgreSQL 16"):
        found(connection, *nodes)
    return True


@pytest.mark.parametrize(
    ("how", "path", "value", "names"),
    [
        ("is", "order.no", "4711", ["", "utf-8"]),
        ("has", "order.no", "71", ["", "byte order mark", "escaped", "latin-1", "utf-8"]),
        ("starts", "order.no", "47", ["", "byte order mark", "escaped", "latin-1", "utf-8"]),
        ("starts", "order.no", "7", []),
        ("is", "order.name", "Käufer", ["", "escaped", "utf-8"]),
        ("has", "order.name", "UFER", ["", "escaped", "latin-1", "utf-8"]),
        ("has", "order.name", "%", []),
        ("is", "order.path", "c:\\x", ["escaped"]),
        ("is", "order.lines.0.sku", "a-1", ["utf-8"]),
        ("is", "0.no", "4711", ["list"]),
        ("is", "n", "12.50", ["utf-8"]),
        ("is", "on", "true", ["utf-8"]),
        ("has", "order", "4711", []),
        ("is", "x", "y", []),
    ],
)
def test_a_value_in_a_body_is_found_by_its_path(
    bodies: Connection, how: str, path: str, value: str, names: list[str]
) -> None:
    term = Term("body", value, how, tuple(path.split(".")))
    assert is_old(bodies, term) or found(bodies, term) == names


def test_unreadable_body_matches_no_term_and_every_excluded_term(bodies: Connection) -> None:
    term = Term("body", "4711", "is", ("order", "no"))
    if not is_old(bodies, Excluded(term)):
        assert found(bodies, Excluded(term)) == sorted(set(BODIES) - {"utf-8"})
        assert found(bodies, Excluded(Excluded(term))) == ["", "utf-8"]


def test_a_header_is_found_by_its_name_and_value_only(engine: Connection) -> None:
    headers = {
        "one": json.dumps({"Tenant": "Ravenhill", "Other": "x"}),
        "spaced": '{ "Other" : "Tenant" ,\n "Tenant" :\t"Ravenhill & Söhne" }',
        "escaped": json.dumps({"Tenant": 'Söhne "x" \\ y'}),
        "as a value": json.dumps({"Other": '"Tenant":"Ravenhill"', "X.Tenant": "Ravenhill"}),
        "cut": '{"Tenant":"Ravenh',
        "no json": '\u0001 "Tenant" Ravenhill',
        "nested": "[" * 10_000,
        "large": json.dumps({"Pad": "x" * 100_000, "Tenant": "Ravenhill"}),
    }
    for name, text in headers.items():
        store.archive_failed(engine, DeadMessage(queue="q", message_id=name, headers=text))

    def with_header(value: str, how: str, name: str = "Tenant") -> list[str]:
        return found(engine, Term("header", value, how, (name,)))

    assert with_header("Ravenhill", "is") == ["one"]
    assert with_header("Ravenhill", "starts") == ["one", "spaced"]
    assert with_header("ravenhill", "has") == ["one", "spaced"]
    assert with_header("Söhne", "has") == ["escaped", "spaced"]
    assert with_header('Söhne "x" \\ y', "is") == ["escaped"]
    assert with_header("%", "has") == with_header("_", "starts") == []
    assert with_header("Ravenhill", "is", "X.Tenant") == ["as a value"]
    assert with_header("x", "has", "(.*)[") == with_header("x", "has", "***:") == []


def test_joined_terms(engine: Connection) -> None:
    for name, queue, type_ in (
        ("a", "q1", "Shop.Pay"),
        ("b", "q2", "Shop.Pay"),
        ("c", "q2", None),
        ("d", "q3", "Ship"),
    ):
        store.archive_failed(engine, DeadMessage(queue=queue, message_id=name, message_type=type_))
    one, two, pay = Term("queue", "q1", "is"), Term("queue", "q2", "is"), Term("type", "Pay")
    assert found(engine, AnyOf((one, two))) == ["a", "b", "c"]
    assert found(engine, AnyOf((one, two)), pay) == ["a", "b"]
    assert found(engine, AnyOf((AllOf((two, Excluded(pay))), one))) == ["a", "c"]
    assert found(engine, Excluded(pay)) == ["c", "d"]
    assert found(engine, Excluded(AnyOf((one, two)))) == ["d"]


def test_numbers_sizes_and_times(engine: Connection) -> None:
    now = datetime.now(UTC)
    for hours in (1, 3, 30):
        message = DeadMessage(
            queue="q",
            message_id=f"{hours} h",
            attempts=hours,
            body=b"x" * hours,
            died_at=now - timedelta(hours=hours),
            sent_at=now - timedelta(hours=hours + 1) if hours < 30 else None,
            machine=f"host-{hours}",
        )
        store.archive_failed(engine, message)
    assert found(engine, Span("attempts", "", 2, 30)) == ["3 h"]
    assert found(engine, Span("size", "", 3, None)) == ["3 h", "30 h"]
    assert found(engine, Span("died", "", 2 * 3600.0, None)) == ["1 h"]
    assert found(engine, Span("died", "", None, 2 * 3600.0)) == ["3 h", "30 h"]
    assert found(engine, Span("died", "", (now - timedelta(hours=4)).isoformat(), 2 * 3600.0)) == ["3 h"]
    assert found(engine, Span("sent", "", None, now.isoformat())) == ["1 h", "3 h"]
    assert found(engine, Excluded(Span("sent", "", None, now.isoformat()))) == ["30 h"]
    assert found(engine, Span("attempts", "", 2**62, None)) == []
    assert found(engine, Term("host", "host-3", "starts")) == ["3 h", "30 h"]
    assert found(engine, Term("host", "host-3", "is")) == ["3 h"]


def test_a_word_is_found_wherever_it_stands(engine: Connection) -> None:
    where: list[dict[str, object]] = [
        {"exception_type": "Shop.Pelikan"},
        {"exception_message": "no PELIKAN here"},
        {"message_type": "Pelikan+Sent"},
        {"headers": '{"Tenant":"pelikan"}'},
        {"body": b"<x>pelikan</x>"},
        {"body": b"<x>PELIKAN</x>"},  # bodies are case-sensitive
        {"stack_trace": "at pelikan"},
    ]
    for number, each in enumerate(where):
        store.archive_failed(engine, DeadMessage(queue="q", message_id=str(number), **each))  # type: ignore[arg-type]
    store.archive_failed(engine, DeadMessage(queue="q", message_id="pelikan"))
    assert found(engine, Term("", "pelikan")) == ["0", "1", "2", "3", "4", "pelikan"]


def test_an_operation_by_what_became_of_its_messages(engine: Connection) -> None:
    ids = [store.archive_failed(engine, DeadMessage(queue="q", message_id=name)) for name in "abc"]
    for place, (archive_id, outcome) in enumerate(zip(ids, ["done", "skipped", None], strict=True)):
        engine.run(
            "insert into messages.operation_item (operation, position, archive_id, outcome) values (7, %s, %s, %s)",
            [place, archive_id, outcome],
        )
    assert found(engine, Term("op", "7")) == ["a", "b", "c"]
    assert found(engine, Term("op", "7/skipped")) == ["b"]
    assert found(engine, Term("op", "7/failed")) == []
    assert found(engine, Term("owner", "ana", keys=())) == []
    for nothing in (ArchiveFilter(state="", operation=0), ArchiveFilter(state="", last_operation=0)):
        assert store.count(engine, nothing, 10).number == 0
    assert store.count(engine, ArchiveFilter(state="", ids=()), 10).number == 0


@pytest.mark.parametrize("name", ArchiveFilter.__dataclass_fields__)
def test_no_field_of_a_filter_asks_for_everything(name: str) -> None:
    """Every given value narrows the search, even an invalid number."""
    several = {"words", "headers", "bodies"}
    given: dict[str, object] = {each: ("x",) if each in several else "x" for each in ArchiveFilter.__dataclass_fields__}
    given.update(operation=0, last_operation=0, also=(Term("", "x"),), ids=(), window=())
    assert ArchiveFilter(state="").condition.text == "(true)"
    assert ArchiveFilter(**{"state": "", name: given[name]}).condition.text != "(true)"  # type: ignore[arg-type]

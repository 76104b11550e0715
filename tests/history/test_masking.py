"""PGQUEUE_MASKED_HEADERS: masked values never leave the queues' database, however the header is written."""

import json
from typing import Any

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.partition_queries import selects
from pgqueue_admin.history.sources.size_limits import HEADERS_MOST
from pgqueue_admin.history.sources.tables import sources

SECRET = "4111"
GRIN = "\N{GRINNING FACE}"


def read(database: Any, settings: Any, names: list[str], *headers: str) -> list[str | None]:
    """The headers that leave the database."""
    settings.PGQUEUE = {**settings.PGQUEUE, "MASKED_HEADERS": names}
    for each in headers:
        store.archive_failed(database, DeadMessage(queue="q", headers=each))
    batch = planning.plan_batch(database, sources(database)[0])
    assert batch is not None
    return [row.headers for part in selects(database, batch, 1) for row in database.all(part)]


def test_values_of_masked_headers_stay(database: Any, settings: Any) -> None:
    plain = '{"A":"Card.Number","Card_Number":"5"}'
    said = '{"A":"1", "Card.Number" : "4111\\"1", "Nested":null,"B":"Card.Number"}'
    masked = '{"A":"1", "Card.Number":"(masked)", "Nested":"(masked)","B":"Card.Number"}'
    assert read(database, settings, ["Card.Number", "Nested"], said, plain) == [masked, plain]


@pytest.mark.parametrize(
    ("said", "masked"),
    [
        ('{"Card":4111,"B":"1"}', '{"Card":"(masked)","B":"1"}'),
        ('{"B":"1","Card" : -4.1e9 }', '{"B":"1","Card":"(masked)" }'),
        ('{"Card":true}', '{"Card":"(masked)"}'),
        ('\n{ "Card"\n:\t"4111" , "Card":"4111"}\n', '\n{ "Card":"(masked)" , "Card":"(masked)"}\n'),
        ('{"B":"\\"Card\\":1,\\\\","Card":"\\\\\\"4111"}', '{"B":"\\"Card\\":1,\\\\","Card":"(masked)"}'),
    ],
)
def test_values_of_any_kind_are_replaced(said: str, masked: str, database: Any, settings: Any) -> None:
    assert read(database, settings, ["Card"], said) == [masked]


NAMES = ["Card", "Sch\N{LATIN SMALL LETTER U WITH DIAERESIS}ssel", f"a{GRIN}", "Shop/Card", 'say"so', "back\\slash"]
SPELLINGS = [
    "\\u0043ard", "Car\\u0064", "\\u0043\\u0061\\u0072\\u0064", "Sch\\u00FCssel", "Sch\\u00fcssel",
    f"\\u0061{GRIN}", "a\\ud83d\\uDE00", "Shop\\/Card", "Shop\\u002fCard", "Shop\\u002FCard",
    'say\\"so', "say\\u0022so",
    "back\\\\slash", "back\\u005Cslash",
]  # fmt: skip


@pytest.mark.parametrize("name", [*SPELLINGS, *NAMES[:4]])
def test_a_name_is_known_however_json_may_write_it(name: str, database: Any, settings: Any) -> None:
    said = f'{{"A":"1","{name}":"{SECRET}"}}'
    assert set(json.loads(said)) & set(NAMES), "it is one of them"
    assert read(database, settings, NAMES, said) == [f'{{"A":"1","{name}":"(masked)"}}']


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_looked_for_without_the_others(name: str, database: Any, settings: Any) -> None:
    """A pattern made for one name could otherwise match another by luck."""
    written = [json.dumps(name, ensure_ascii=ascii_only) for ascii_only in (True, False)]
    found = read(database, settings, [name], *[f'{{{each}:"{SECRET}"}}' for each in written])
    assert found == [f'{{{each}:"(masked)"}}' for each in written]


@pytest.mark.parametrize(
    "said",
    [
        "{'Card':'4111'}",
        "{'\\u0043ard':'4111'}",
        '{"A":{"Card":"4111"},"B":"1"}',
        '{"A":{"\\u0043ard":"4111"}}',
        '{"A":["Card","4111"]}',
        '{"Card":{"Number":"4111"},"B":"1"}',
        '{"Card":\n[4111,\n4112]}',
        '{"Card":"4111',
        '{"B":"1","Card":"4111"} and more',
        '{"B":"1"}{"Card":"4111"}',
        '[{"Card":"4111"}]',
        '{"B":"\\x","Card":"4111"}',
        '{"B":"1" "Card":"4111"}',
        '{Card:"4111"}',
        "Card: 4111",
        '{"\\uZZZZ":"1","\\u0043ard":"4111"}',
    ],
)
def test_ambiguous_headers_are_withheld_whole(said: str, database: Any, settings: Any) -> None:
    """No endpoint writes such headers."""
    assert read(database, settings, ["Card"], said) == [None]


@pytest.mark.parametrize(
    "said", ["{'B':'1'}", '{"A":{"B":"1"}}', '{"A":"1', "", '{"B":"1\\n\\u2014"}', '{"B":"\\u0041 of Card\\u0041"}']
)
def test_headers_without_a_masked_name_are_unchanged(said: str, database: Any, settings: Any) -> None:
    assert read(database, settings, ["Card"], said) == [said]


def test_signs_of_like_in_a_name_stand_for_themselves(database: Any, settings: Any) -> None:
    said = '{"a_b%c":"4111"}', "{'axbyc':'1'}"
    assert read(database, settings, ["a_b%c"], *said) == ['{"a_b%c":"(masked)"}', said[1]]


@pytest.mark.parametrize("names", [[], ["Card.Number"]])
def test_headers_that_are_too_large_stay(names: list[str], database: Any, settings: Any) -> None:
    said = ["x" * size for size in (HEADERS_MOST, HEADERS_MOST + 1)]
    assert read(database, settings, names, *said) == [said[0], None]

"""JSON bodies: the fast writer writes what ``json`` writes (T5)."""

import json
from collections import namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.transport.wire.serializers import JsonSerializer

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.none() | st.booleans() | st.integers() | TEXTS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=10)
Point = namedtuple("Point", "x y")


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


@dataclass
class Order:
    number: int


@given(VALUES)
def test_any_value_is_written_as_json_writes_it(value):
    body = JsonSerializer().dump(value)
    assert body == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert JsonSerializer().load(body) == value


@given(st.floats())
def test_any_number_comes_back(value):
    assert repr(JsonSerializer().load(JsonSerializer().dump({"n": value}))["n"]) == repr(value)


@pytest.mark.parametrize("beside", [None, 2**70], ids=["plain", "too large for the quick writer"])
@pytest.mark.parametrize(
    ("value", "written"),
    [
        (datetime(2026, 11, 22, 10, tzinfo=UTC), '"2026-11-22 10:00:00+00:00"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.50"), '"1.50"'),
        (Colour.RED, '"red"'),
        (Size.LARGE, "3"),
        (Point(1, 2), "[1,2]"),
        (Order(1), '"Order(number=1)"'),
        ({1: "a"}, '{"1":"a"}'),
    ],
)
def test_non_json_values_are_written_alike_by_both_writers(value, written, beside):
    around = [] if beside is None else [beside]
    assert JsonSerializer().dump([value, *around]).decode() == ",".join([f"[{written}", *map(str, around)]) + "]"

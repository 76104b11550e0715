"""Single values are read from JSON objects, even from a truncated one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.formatting import payload_fields
from pgqueue_admin.formatting.payload_fields import DEEPEST, LONGEST_NAME


def test_values_stand_by_their_paths_as_they_came() -> None:
    text = '{"OrderId": "A-1", "Total": 49.90, "n": 9007199254740993, "ok": true, "no": null, "to": {"city": "Wien"}}'
    assert payload_fields.read(text) == {
        "OrderId": "A-1",
        "Total": "49.90",
        "n": "9007199254740993",
        "ok": "true",
        "no": "null",
        "to.city": "Wien",
    }


def test_values_in_lists_or_too_deep_are_left_out() -> None:
    assert payload_fields.read('{"a": [1, {"b": 2}], "c": {"d": {"e": 3, "f": {"g": 4}}}}') == {"c.d.e": "3"}


def test_a_name_is_written_as_a_search_writes_it() -> None:
    assert payload_fields.read('{"a.b": 1, "say \\"x\\"": 2, "": 3}') == {'"a.b"': "1", '"say ""x"""': "2", '""': "3"}


@pytest.mark.parametrize("name", ["x" * (LONGEST_NAME + 1), "turn\u202earound", "no\u0000thing", "two\nlines"])
def test_a_name_that_is_no_head_of_a_column_is_none(name: str) -> None:
    assert payload_fields.read(json.dumps({name: 1, "b": 2})) == {"b": "2"}


@pytest.mark.parametrize(
    "text",
    ["", "[]", '["a"]', '"a"', "7", "{", '{"a": 1', '{"a" 1}', '{"a": 1,}', '{"a": x}', '{"a": 1} {}', '{"a": 1]',
     '{1: 2}', '{"a": "\\x"}', "{,}", '{"a": [1,]}', "}", "<a/>", '{"a": 01}', '{"a": 1}}', "[" * 5000, '{"a":' * 5000],
)  # fmt: skip
def test_text_that_is_no_json_object_has_no_fields(text: str) -> None:
    assert payload_fields.read(text) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def _told(document: object, path: tuple[str, ...] = ()) -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(document, dict) and len(path) < DEEPEST:
        for name, value in document.items():
            found |= _told(value, (*path, name))
    elif path and not isinstance(document, dict | list):
        name = ".".join(map(payload_fields.key, path))
        if len(name) <= LONGEST_NAME and name.isprintable():
            found[name] = document if isinstance(document, str) else json.dumps(document)
    return found


@given(st.dictionaries(st.text(), JSON), st.booleans(), st.data())
def test_a_start_tells_nothing_that_the_whole_does_not(document: object, is_plain: bool, data: st.DataObject) -> None:
    text = json.dumps(document, ensure_ascii=is_plain)
    whole = payload_fields.read(text)
    assert whole == _told(document)
    at = data.draw(st.integers(0, len(text) - 1))
    start = payload_fields.read(text[:at], is_cut=True)
    assert start is not None
    assert start.items() <= whole.items()

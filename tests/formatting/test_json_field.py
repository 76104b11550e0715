"""Changing one field of a JSON text leaves every other character in place."""

import json

import pytest

from pgqueue_admin.formatting import json_field
from pgqueue_admin.formatting.json_tokens import NotJson

TEXT = '{ "a" : {"b" :1.50, "c":[1,\t{"d":"x"} ]}, "e":null,\r\n "big": 9007199254740993, "é": "\\u00e9" }'


def at(path: str, text: str = TEXT) -> json_field.FoundField:
    return json_field.find(text, json_field.path_of(path))


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.b", '"b" :1.50', '"b" :7'),
        ("$.a.b", '"b" :1.50', '"b" :7'),
        ("a.c[0]", "[1,", "[7,"),
        ("a.c.0", "[1,", "[7,"),
        ("a.c[1].d", '"d":"x"', '"d":7'),
        ("e", '"e":null', '"e":7'),
        ("big", "9007199254740993", "7"),
        ("é", '"\\u00e9"', "7"),
        ("a.c[1]", '{"d":"x"}', "7"),
    ],
)
def test_a_value_is_set_and_nothing_else(path: str, before: str, after: str) -> None:
    found = at(path)
    assert found.field
    assert json_field.with_value(TEXT, found.field, "7") == TEXT.replace(before, after)


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("a.b", '"b" :1.50, '),
        ("a.c[0]", "1,\t"),
        ("a.c[1]", ',\t{"d":"x"}'),
        ("a.c[1].d", '"d":"x"'),
        ("e", ', "e":null'),
        ("é", ', "é": "\\u00e9"'),
    ],
)
def test_a_field_goes_with_one_comma(path: str, gone: str) -> None:
    found = at(path)
    assert found.field
    after = json_field.without(TEXT, found.field)
    assert after == TEXT.replace(gone, "")
    json.loads(after)


@pytest.mark.parametrize(
    ("text", "path", "after"),
    [
        ('{"a":1}', "b", '{"a":1,"b":7}'),
        ('{ "a": 1 }', "b", '{ "a": 1, "b": 7 }'),
        ('{\n  "a": 1,\n  "c": 2\n}\n', "b", '{\n  "a": 1,\n  "c": 2,\n  "b": 7\n}\n'),
        ("{}", "b", '{"b":7}'),
        ('{"a":{ }}', "a.b", '{"a":{"b":7 }}'),
        ('[{"x":1}]', "[0].b", '[{"x":1,"b":7}]'),
        ('{"a":"é"}', "ü", '{"a":"é","ü":7}'),
        ('{"a":1}', "ü", '{"a":1,"\\u00fc":7}'),
    ],
)
def test_a_field_is_added_as_its_neighbours_are_laid_out(text: str, path: str, after: str) -> None:
    found = at(path, text)
    assert found.field is None
    added = json_field.with_field(text, found, json_field.path_of(path)[-1], "7")
    assert added == after
    json.loads(added)


def test_missing_path_has_no_field() -> None:
    for path in ("zz.b", "e.b", "a.c[5]", "a.c.d"):
        found = at(path)
        assert (found.field, found.parent) == (None, None), path


@pytest.mark.parametrize(
    "text", ["", "{", '{"a":1,}', "{'a':1}", '{"a":1} x', "[1 2]", '{"a" 1}', "NaN", '"x', "[" * 300 + "]" * 300]
)
def test_invalid_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        json_field.find(text, ("a",))


def test_a_name_that_stands_twice_is_refused_where_the_path_goes() -> None:
    with pytest.raises(json_field.FieldTwice):
        at("a", '{"a":1,"b":2,"\\u0061":3}')
    assert at("b", '{"a":1,"b":2,"a":3}').field


@pytest.mark.parametrize("path", ["", "a..b", "a.", "[x]", "a b", "a[1]b", ".a", "a[*]"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    if path == "a b":
        assert json_field.path_of(path) == ("a b",), "names may have blanks within"
        return
    with pytest.raises(json_field.PathFault):
        json_field.path_of(path)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "1.0", True),
        ("1", '"1"', False),
        ('"\\u0061"', '"a"', True),
        ("true", "true", True),
        ("null", "false", False),
    ],
)
def test_values_are_compared_by_what_they_say(one: str, other: str, same: bool) -> None:
    assert json_field.is_same(one, other) is same

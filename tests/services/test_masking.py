"""What rules mask in texts and bodies, and which rules are invalid."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.services.masking import body, json_text, text
from pgqueue_admin.services.masking.rule import Rule, RuleFault, ready

BAR = '"⟦masked: R⟧"'


@pytest.fixture(autouse=True)
def archive() -> None:
    """Masking needs no database."""


def path(pattern: str) -> Rule:
    return ready("R", "path", pattern, ())


def regex(pattern: str) -> Rule:
    return ready("R", "regex", pattern, ())


def shown(document: str, *rules: Rule, content_type: str | None = None) -> str:
    found = body.masked(document.encode(), content_type, rules)
    if found is None:
        return document
    return found.hidden if found.content is None else found.content.decode()


@pytest.mark.parametrize(
    ("pattern", "before", "after"),
    [
        ("card", '{"card":"1","x":{"card":2}}', f'{{"card":{BAR},"x":{{"card":2}}}}'),
        ("$.a.b", '{"a":{"b":[1,{"c":2}],"d":3}}', f'{{"a":{{"b":{BAR},"d":3}}}}'),
        (
            "items[*].card",
            '{"items":[{"card":1},{"card":{"x":[]}}]}',
            f'{{"items":[{{"card":{BAR}}},{{"card":{BAR}}}]}}',
        ),
        ("items.card", '{"items":[[{"card":1}]]}', f'{{"items":[[{{"card":{BAR}}}]]}}'),
        ("**.card", '[{"a":{"CARD":1}},{"card":2}]', f'[{{"a":{{"CARD":{BAR}}}}},{{"card":{BAR}}}]'),
        ("*.card", '{"a":{"card":1},"card":2}', f'{{"a":{{"card":{BAR}}},"card":2}}'),
        ('"a.b".c', '{"a.b":{"c":1},"a":{"b":{"c":2}}}', f'{{"a.b":{{"c":{BAR}}},"a":{{"b":{{"c":2}}}}}}'),
        ("card", '{"c\\u0061rd":1}', f'{{"c\\u0061rd":{BAR}}}'),
        ("card", '{"card":1,"card":2}', f'{{"card":{BAR},"card":{BAR}}}'),
        ("x", '{"n":9007199254740993,"m":49.90 , "z":1E5}', '{"n":9007199254740993,"m":49.90 , "z":1E5}'),
    ],
)
def test_a_path_hides_values_and_leaves_the_rest_as_written(pattern: str, before: str, after: str) -> None:
    assert shown(before, path(pattern)) == after


NO_JSON = (
    "x", '{"a":1', '{"a" 1}', '{"a":1,}', "[1,]", "{} {}", '{"a":NaN}', '{"a":01}', "<a/>", '{"a":"\\x"}', "{1:2}", "]",
    '{"a":1]', '"', '{"b":1}x',
)  # fmt: skip


@pytest.mark.parametrize("document", NO_JSON)
def test_body_that_is_no_json_is_hidden_by_a_path_rule(document: str) -> None:
    assert "it is no JSON" in shown(document, path("b"))


@pytest.mark.parametrize(
    ("pattern", "before", "after"),
    [
        (r"\d{16}", '{"n":"pay 4111111111111111 now"}', '{"n":"pay ⟦masked: R⟧ now"}'),
        (r"\d{16}", '{"n":4111111111111111}', f'{{"n":{BAR}}}'),
        (r"\d{16}", '{"4111111111111111":[]}', f"{{{BAR}:[]}}"),
        ("4111", '{"n":"4\\u0031\\u0031\\u0031 x"}', '{"n":"⟦masked: R⟧ x"}'),
        (r'"cvv": "\d+"', '{"cvv":"123","x":"123"}', f'{{"cvv":{BAR},"x":"123"}}'),
        (r'1,"y":2', '{"x":1,"y":2}', f'{{"x":{BAR},{BAR}:{BAR}}}'),
        ("4111", "<a>4111</a><b>1</b>", "<a>⟦masked: R⟧</a><b>1</b>"),
        ("ab+", "x abbb abb", "x ⟦masked: R⟧ ⟦masked: R⟧"),
    ],
)
def test_an_expression_hides_what_it_matches(pattern: str, before: str, after: str) -> None:
    assert shown(before, regex(pattern)) == after


@pytest.mark.parametrize(
    ("document", "content_type", "why"),
    [
        ("<a>4&#49;11</a>", None, "entities"),
        ('{"a":"4\\u003111"}\n{}', None, "escapes"),
        ("<a>4111</a><b>4&#49;11 <!-- 4111 --></b>", None, "entities"),
        ("<a>4<!-- x -->111</a>", None, "entities"),
        ("<a>4<![CDATA[11]]>1</a>", None, "entities"),
        ("<a>4&#49;<!-- x -->11</a>", None, "entities"),
        ("card=4%3111&name=x", None, "escapes"),
        ("x" * 500_001, None, "more than 500,000 bytes"),
        ("a\0b", None, "no UTF-8 text"),
        ("{}", "application/json; charset=utf-16", "no UTF-8 text"),
    ],
)
def test_body_an_expression_may_miss_is_hidden_as_a_whole(document: str, content_type: str | None, why: str) -> None:
    assert why in shown(document, regex("4111"), content_type=content_type)


def test_a_form_is_looked_at_as_it_is_read() -> None:
    assert "escapes" in shown("name=Jo+Doe", regex("Jo Doe"))
    assert shown("1 + 1, 100%, <!-- x -->", regex("Jo Doe")) == "1 + 1, 100%, <!-- x -->"


@pytest.mark.parametrize("begun", ["<!--", "<?"])
def test_comments_without_end_are_read_once(begun: str) -> None:
    """Searching to the end of the text from each of them would take minutes."""
    assert shown(begun * 100_000, regex("4111")) == begun * 100_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_any_json_is_understood_and_unchanged_where_nothing_is_hidden(
    document: Any, ascii_only: bool, indent: int | None
) -> None:
    written = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    text_ = written.encode("utf-8", "replace").decode()
    assert shown(text_, path("no such name.x"), regex("no such text")) == text_


@given(JSON)
def test_a_hidden_name_leads_nowhere_in_what_is_shown(document: Any) -> None:
    wrapped = {"a": document, "secret": {"is": ["s3cr3t", document]}, "b": [{"secret": "s3cr3t"}]}
    written = json.dumps(wrapped)
    after = shown(written, path("**.secret"))
    assert "s3cr3t" not in after
    assert json.loads(after)["secret"] == json.loads(after)["b"][0]["secret"] == "⟦masked: R⟧"


@given(st.text(alphabet="ab1 \n<>&é", max_size=40))
def test_spans_are_those_of_python_where_both_agree(said: str) -> None:
    assert text.masked(said, [regex("[ab]+1")]) == re.sub("[ab]+1", "⟦masked: R⟧", said)


def test_matches_without_end_are_given_up() -> None:
    """RE2 reads to the end of the text for each match, so once per character."""
    slow = regex("x(?:.*y)?")
    patience = text.MaskingDeadline(0.05)
    with pytest.raises(text.TooSlow):
        text.found("x" * 200_000, [slow], patience)


def test_paths_are_given_up_likewise() -> None:
    with pytest.raises(text.TooSlow):
        json_text.hidden('{"a":1}', [path("b")], text.MaskingDeadline(-1))


def test_a_path_is_followed_once_for_all_names_that_no_path_has() -> None:
    fields = ",".join(f'"n{number}":{{"*":1,"CARD":2}}' for number in range(9_000))
    rules = [path("*.card"), *(path(f"**.x{n}.y") for n in range(49))]
    found = json_text.hidden(f"{{{fields}}}", rules, text.MaskingDeadline(60))
    assert len(found) == 9_000


@pytest.mark.parametrize(
    ("kind", "pattern", "why"),
    [
        ("regex", "a(?=b)", "“(?=”, character 2"),
        ("regex", "(a)\\1", "“\\1”, character 4"),
        ("regex", "x[z-a]", "“z-a”, character 3"),
        ("regex", "a(b", "missing )"),
        ("regex", "x*", "matches an empty text"),
        ("regex", "(?:a{1000}){1000}", "{1000}"),
        ("path", "a..b", "character 3: a name is missing"),
        ("path", "a[0].b", "“[0].b”, character 2"),
        ("path", "a.**", "** stands before a name"),
        ("path", "**.**.a", "write it once"),
        ("path", "", "Pattern: 1 to"),
        ("glob", "x", "A rule is one of"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_the_place(kind: str, pattern: str, why: str) -> None:
    with pytest.raises(RuleFault) as refused:
        ready("R", kind, pattern, ())
    assert why in str(refused.value)


@pytest.mark.parametrize("name", ["", "a⟧b", 'a"b', "a\\b", "<b>", "x" * 61, "a\nb"])
def test_a_name_fits_into_a_bar(name: str) -> None:
    with pytest.raises(RuleFault, match="Name"):
        ready(name, "header", "x", ())


@pytest.mark.parametrize(
    ("keys", "hides", "meets"),
    [
        (("items", "0", "card"), True, True),
        (("items", "-1", "card", "x"), True, True),
        (("Items",), False, True),
        (("other", "card"), False, False),
    ],
)
def test_a_path_of_a_search_is_told_from_others(keys: tuple[str, ...], hides: bool, meets: bool) -> None:
    known = path("items[*].card").path
    assert known
    assert (known.hides(keys), known.meets(keys)) == (hides, meets)

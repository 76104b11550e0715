"""A body is shown as it is: nothing lost, resolved or executed, and never an error (C3, T6)."""

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgqueue_admin.formatting import body_views, escape_invisible, pretty_print
from pgqueue_admin.formatting.escape_invisible import joined
from pgqueue_admin.formatting.pretty_print import MAX_LEVELS

HOSTILE = ['"', "\\", "[", "{", "<", "<!--", "<![CDATA[", "<a '", '<a "', "&", "{[", '"\\', "1 ", "<?", "\0"]
STRINGS = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*"?)', re.DOTALL)


def without_blanks(text: str) -> str:
    """The text without white space outside of strings."""
    return "".join(part if place % 2 else re.sub(r"\s", "", part) for place, part in enumerate(STRINGS.split(text)))


def pretty(raw: bytes, content_type: str | None = None) -> str:
    return joined(body_views.part(raw, content_type=content_type).pieces)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@given(values, st.sampled_from([None, 1, 4]))
def test_indenting_json_keeps_every_token(value: Any, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    said = joined(pretty_print.indented_json(text) or [])
    assert without_blanks(said) == without_blanks(text)
    assert json.loads(said) == value


@given(st.text(alphabet='{}[]:,"\\ \n01aé<', max_size=MAX_LEVELS))
def test_indenting_what_is_no_json_keeps_every_token_too(text: str) -> None:
    said = pretty_print.indented_json(text)
    assert said is not None
    assert without_blanks(joined(said)) == without_blanks(text)


@given(st.text(alphabet="<>/!-[]?'\"= \nab&;", max_size=MAX_LEVELS))
def test_indenting_xml_keeps_every_character(text: str) -> None:
    said = pretty_print.indented_xml(text)
    assert said is not None
    assert re.sub(r"\s", "", joined(said)) == re.sub(r"\s", "", text)


@given(
    st.binary(max_size=400),
    st.sampled_from([*body_views.VIEWS, "", "nonsense"]),
    st.sampled_from([None, "application/json", "text/xml", "application/octet-stream", "text/plain; charset=x", "\0"]),
)
def test_no_body_in_no_view_fails(raw: bytes, view: str, content_type: str | None) -> None:
    part = body_views.part(raw, view=view, content_type=content_type, total=len(raw))
    text = joined(part.pieces)
    assert part.end == len(raw)
    text.encode()  # it can be encoded: no lone surrogate is left
    assert not re.search("[\0\u202a-\u202e\u2066-\u2069]", text)


@given(st.text(), st.integers(1, 40))
def test_a_character_cut_by_the_end_of_a_chunk_waits_for_the_next(text: str, size: int) -> None:
    raw, at, said = text.encode(), 0, ""
    while at < len(raw):
        part, used = escape_invisible.decode_part(raw[at : at + size + 4])
        said, at = said + part, at + used
    assert said == text


def test_big_numbers_money_order_and_duplicate_keys_stay() -> None:
    said = pretty(b'{"z":9007199254740993,"Amount":49.90,"a":1E5,"a":2}', "application/json")
    assert said == '{\n  "z": 9007199254740993,\n  "Amount": 49.90,\n  "a": 1E5,\n  "a": 2\n}'


def test_short_lists_stand_on_one_line() -> None:
    assert pretty(b'{"Lines":[{"Sku":"K","Qty":1},{}],"e":[]}') == (
        '{\n  "Lines": [\n    { "Sku": "K", "Qty": 1 },\n    {}\n  ],\n  "e": []\n}'
    )


def test_two_hundred_levels_are_indented_and_more_are_not() -> None:
    deep = body_views.part(b"[" * 200 + b"]" * 200, content_type="application/json")
    deeper = body_views.part(b"[" * 60_000, content_type="application/json")
    assert joined(deep.pieces).count("\n") == 2 * 199
    assert joined(deeper.pieces) == "[" * 60_000
    assert "too deeply" in deeper.note


def test_xml_resolves_nothing() -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a><b>&x;</b><c q="1>2"/></a>'
    said = pretty(bomb, "text/xml")
    assert "&x;" in said
    assert "root:" not in said
    assert said.endswith('<a>\n  <b>&x;</b>\n  <c q="1>2"/>\n</a>')


def test_text_beside_tags_keeps_its_blanks() -> None:
    assert pretty(b"<p>one <b>two</b> three</p>", "text/xml") == "<p>one <b>two</b> three</p>"


@pytest.mark.parametrize(
    ("raw", "declared", "kind"),
    [
        (b'{"a":1}', None, "JSON"),
        (b"  [1]", "text/plain", "JSON"),
        (b"\xef\xbb\xbf<a/>", None, "XML"),
        (b"anything", "application/vnd.shop+json", "JSON"),
        (b"\x1f\x8b\x08\x00\x00", "application/json", "binary"),
        (b"\xff\xfe<\x00", "text/xml", "binary"),
        ("Für Zoë".encode(), None, "text"),
        ("\U0001f600\U0001f600 \uf900".encode(), None, "text"),
        (b"", "application/json", "JSON"),
    ],
)
def test_kind(raw: bytes, declared: str | None, kind: str) -> None:
    assert body_views.kind_of(raw, declared) == kind


def test_broken_bytes_nul_and_bidi_controls_are_marked() -> None:
    part = body_views.part("a\0b\u202ec".encode() + b"\xffz, and enough text to be text", view="raw")
    marks = [piece.text for piece in part.pieces if piece.kind == "mark"]
    assert marks == ["␀", "‹U+202E›", "\\xff"]
    assert part.note == "1 byte is not UTF-8, shown as \\xNN."


def test_line_ends_of_windows_are_no_marks() -> None:
    assert pretty(b"one\r\ntwo\rthree") == "one\r\ntwo␍three"


def test_hex_has_offsets_and_sixteen_a_row() -> None:
    assert list(body_views.hex_rows(bytes(range(0x30, 0x42)), 32)) == [
        "00000020  30 31 32 33 34 35 36 37  38 39 3a 3b 3c 3d 3e 3f  |0123456789:;<=>?|",
        "00000030  40 41                                             |@A|",
    ]


def test_only_the_first_64_kb_are_drawn_and_the_rest_is_named() -> None:
    raw = "é".encode() * 200_000
    part = body_views.part(raw[: body_views.CHUNK + 1][1:], start=1, total=len(raw))
    assert part.end - part.start <= body_views.CHUNK
    assert part.next_start == part.end
    assert not part.whole


def test_a_large_body_is_indented_only_when_asked() -> None:
    head = b'{"a":[' + b"1," * 40_000
    assert body_views.part(head, total=2_000_000).view == "raw"
    assert body_views.part(head, total=2_000_000, view="pretty").view == "pretty"


def test_thousands_of_tokens_lose_their_colours_and_nothing_else() -> None:
    raw = json.dumps([{"k": n, "v": str(n)} for n in range(3000)]).encode()
    part = body_views.part(raw[: body_views.CHUNK])
    assert len(part.pieces) < 10
    assert without_blanks(joined(part.pieces)) == without_blanks(raw[: body_views.CHUNK].decode())


@settings(max_examples=20)
@given(st.sampled_from(HOSTILE))
def test_the_worst_64_kb_take_a_moment(unit: str) -> None:
    raw = (unit * body_views.CHUNK)[: body_views.CHUNK].encode()
    started = time.process_time()
    for declared in ("application/json", "text/xml"):
        body_views.part(raw, content_type=declared, view="pretty")
    assert time.process_time() - started < 1.5


def test_invisible_characters_are_escaped_in_edited_json() -> None:
    text = json.dumps({"\u202eturned": "a\ufeffb\nc"}, ensure_ascii=False)
    written = escape_invisible.in_json(text)
    assert json.loads(written) == json.loads(text)
    assert not {"\u202e", "\ufeff"} & set(written)

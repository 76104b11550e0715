"""Equal failures have one fingerprint despite varying details, and different failures have different ones."""

import time

import pytest

from pgqueue_admin.formatting import stack_traces
from pgqueue_admin.formatting.fingerprint import fingerprint, folded, is_prefix, own_frame
from tests.fingerprint_cases import FRAMES, HOSTILE, LONG_MESSAGES, MESSAGE, OTHERS, OWN_FRAMES, SAME


def digest(message: str | None, trace: str | None = None, own_code: tuple[str, ...] = ()) -> str:
    return fingerprint("Refused", message, trace, own_code).digest


def test_one_failure_has_one_fingerprint() -> None:
    trace = "   at System.Linq.First()\n   at Shop.Gateway.Charge(Card c) in G.cs:line {}\n   at NServiceBus.X()"
    first, second = (
        fingerprint("Declined", f"Card '{card}' of order {number} refused", trace.format(number))
        for card, number in (("a", 7), ("b", 912))
    )
    assert tuple(first) == tuple(second) == ("Declined", "Shop.Gateway.Charge", "Card <text> of order <n> refused")
    assert len(first.digest) == 16
    others = [
        fingerprint("Other", "Card 'a' of order 7 refused", trace),
        fingerprint("Declined", "Card 'a' of order 7 refused", "   at Other.Place()"),
        fingerprint("Declined", "Card 'a' of order 7 accepted", trace),
    ]
    assert len({first.digest, *(each.digest for each in others)}) == 4


@pytest.mark.parametrize("pair", SAME)
def test_varying_parts_of_a_message_are_not_in_the_fingerprint(pair: tuple[str, str]) -> None:
    assert folded(pair[0]) == folded(pair[1])


def test_significant_words_of_a_message_are_in_the_fingerprint() -> None:
    """An apostrophe is not a quotation mark, and a word of hexadecimal digits alone is not an id."""
    assert len({folded(each) for each in [*OTHERS, *(pair[0] for pair in SAME)]}) == len(OTHERS) + len(SAME)


def test_a_trace_stands_for_its_own_frame() -> None:
    assert [own_frame("x", "x", long) for long, _ in OWN_FRAMES] == [own_frame("x", "x", one) for _, one in OWN_FRAMES]
    assert [own_frame("x", "x", one) for _, one in OWN_FRAMES] == [
        "Shop.Pay",
        "Shop.Pay",
        "Shop.Pay",
        "last",
        "own",
        None,
    ]


def test_a_message_of_many_pages_hides_no_frame() -> None:
    """.NET repeats the message in front of its frames."""
    frames = [own_frame("Refused", MESSAGE, trace) for trace in LONG_MESSAGES]
    assert frames == ["Shop.Orders.Reserve", "Shop.Returns.Reserve"]


def test_pages_fold_the_frames_that_no_failure_is_told_by() -> None:
    for kind, frame in ((kind, frame) for kind, some in FRAMES.items() for frame in some):
        assert [line.kind for line in stack_traces.read(frame)] == [kind], frame
        assert (own_frame("x", "x", frame) is None) == (kind == "framework"), frame


NET = "   at Vendor.Client.Call()\n   at Shop.Orders.Reserve(Order o)\n   at Shop.Later()"
PYTHON = '  File "/app/shop/orders.py", line 1, in reserve\n  File "/app/vendor/client.py", line 2, in call\nE: x'


@pytest.mark.parametrize(
    ("trace", "own_code", "frame"),
    [
        (NET, (), "Vendor.Client.Call"),
        (NET, ("Shop.",), "Shop.Orders.Reserve"),
        (NET, ("Other.", "Shop.Orders"), "Shop.Orders.Reserve"),
        (NET, ("Elsewhere.",), "Vendor.Client.Call"),
        (PYTHON, (), "call"),
        (PYTHON, ("shop",), "reserve"),
        (PYTHON, ("shop.orders",), "reserve"),
        (PYTHON, ("shop.order",), "call"),
        (PYTHON.replace("/", "\\"), ("shop.orders",), "reserve"),
    ],
)
def test_own_code_is_preferred_where_it_is_named(trace: str, own_code: tuple[str, ...], frame: str) -> None:
    assert own_frame("x", "x", trace, own_code) == frame


def test_only_names_are_prefixes() -> None:
    assert [is_prefix(each) for each in ("Shop.", "shop.billing", "Shop+Inner", "", "(", "a b", "1a", ".")] == [
        True, True, True, False, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(("message", "trace"), HOSTILE)
def test_hostile_text_has_a_fingerprint_within_a_second(message: str | None, trace: str | None) -> None:
    began = time.process_time()
    assert len(digest(message, trace)) == 16
    assert time.process_time() - began < 1


def test_half_characters_have_a_fingerprint() -> None:
    assert len(digest("\ud800", "   at \udfff()")) == 16

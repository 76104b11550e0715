"""A body from the archive or from history is read in parts like one in an endpoint's table (T6)."""

from pgqueue_admin.console.messages.detail import body
from pgqueue_admin.formatting.body_views import BodyPart
from pgqueue_admin.formatting.escape_invisible import joined
from pgqueue_admin.monitor.bodies import PART
from pgqueue_admin.services.content_access import ALL

KEPT = b"{" + "\u00fc".encode() * PART


def part(start: str = "") -> BodyPart:
    asked = {"body": "bodystring", "from": start}
    found = body.of_copy(lambda at, length: KEPT[at : at + length], len(KEPT), None, asked, ALL, ()).part
    assert found
    return found


def test_bodystring_says_how_far_it_goes_and_cuts_no_character() -> None:
    first = part()
    assert joined(first.pieces) == "{" + "\u00fc" * (PART // 2 - 1)
    assert (first.whole, first.start, first.end, first.next_start) == (False, 0, PART - 1, PART - 1)


def test_bodystring_goes_on_where_it_ended() -> None:
    last = part(str(len(KEPT) - 4))
    assert (joined(last.pieces), last.end, last.next_start) == ("\u00fc\u00fc", len(KEPT), None)

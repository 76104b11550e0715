"""Senders control headers, error and trace: no page grows without limit, and no text is lost."""

import json
import uuid
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from pgqueue_admin.archive import ingester, long_headers
from pgqueue_admin.dialects.postgresql import postgresql
from tests.console.pages import matched
from tests.console.recorded import ERRORS, Recorded
from tests.console.test_message import act

INFO = "NServiceBus.ExceptionInfo."
UNSEEN = "\u200ba" * 500_000
MOST = 8_000_000  # bytes of a page whose texts are all as hostile and long as possible


def died(recorded: Recorded, **headers: Any) -> int:
    sql, connection = postgresql().queue.send(table=ERRORS), recorded.connection
    known = {"NServiceBus.MessageId": str(uuid.uuid4()), "NServiceBus.FailedQ": '"public"."Sales"'}
    row = {"id": uuid.uuid4(), "ttbr_ms": None, "headers": json.dumps(known | headers), "body": b"{}"}
    connection.run(sql, row)
    while ingester.ingest(connection, ERRORS).full:
        pass
    return int(connection.value("select max(id) from messages.message_archive"))


def page(recorded: Recorded, archive_id: int, asked: str = "") -> str:
    answer = recorded.operator.get(f"/archive/{archive_id}/{asked}")
    assert answer.status_code == 200
    assert len(answer.content) < MOST
    return " ".join(answer.content.decode().replace("\u00a0", " ").split())


def whole(recorded: Recorded, archive_id: int) -> dict[str, str]:
    answer = recorded.operator.get(f"/archive/{archive_id}/headers/")
    assert answer["Content-Disposition"] == f'attachment; filename="archive-{archive_id}-headers.json"'

    async def joined() -> bytes:
        return b"".join([piece async for piece in answer])  # type: ignore[attr-defined]

    found: dict[str, str] = json.loads(async_to_sync(joined)())
    return found


def test_of_many_headers_the_first_are_shown_and_all_are_a_file(recorded: Recorded) -> None:
    few = died(recorded, **{f"h{number}": "v" for number in range(2_000)})
    html = page(recorded, few)
    assert "Only the first 500 of 2,002 are shown." in html
    assert html.count('<th scope="row"><span class="mono">') == 500
    many = died(recorded, **{f"h{number}": "v" for number in range(100_000)})
    html = page(recorded, many)
    assert "Only the first 500 are shown: they are 1.5 MB in all." in html
    assert f'href="/archive/{many}/headers/"' in html
    assert len(whole(recorded, many)) == 100_002


def test_a_long_header_does_not_hide_those_before_it(recorded: Recorded) -> None:
    html = page(recorded, died(recorded, Order="42", Big='",' * 2_000_000))
    assert "Only the first 3 are shown" in html
    assert matched(r">(Order)<", html)
    first = died(recorded, **{"Big": "x" * 100_000})
    alone = {"id": first, "headers": json.dumps({"Big": "x" * 100_000})}
    recorded.connection.run("update messages.message_archive set headers = %(headers)s where id = %(id)s", alone)
    assert "These headers are too large to be read here." in page(recorded, first)


def test_a_retry_keeps_headers_of_any_length(recorded: Recorded) -> None:
    archive_id = died(recorded, Big="y" * 5_000_000)
    page(recorded, archive_id)
    act(recorded.operator, "retry", archive_id)
    assert recorded.state(archive_id) == "retried"
    sent = recorded.connection.value("""select headers from "Sales" order by seq desc limit 1""")
    assert json.loads(sent)["Big"] == "y" * 5_000_000


@pytest.mark.parametrize("asked", ["", "?trace=full"])
def test_an_error_of_any_length_is_cut_and_says_so(recorded: Recorded, asked: str) -> None:
    error = {f"{INFO}ExceptionType": "X", f"{INFO}Message": UNSEEN, f"{INFO}StackTrace": "   at Shop.x()\n" * 330_000}
    html = page(recorded, died(recorded, **error), asked)
    assert "… 6,384 more characters are kept; all of it stands among the headers" in html
    more = matched(r"The trace is cut here: it has ([\d,]+) more characters.", html)
    assert f"… {more} more characters" in matched(r'data-copy="([^"]*more characters)"', html)


def test_texts_that_fit_are_shown_whole(recorded: Recorded) -> None:
    html = page(recorded, died(recorded, **{f"{INFO}ExceptionType": "X", f"{INFO}Message": "brief"}))
    assert "more characters" not in html
    assert "Only the first" not in html


@pytest.mark.parametrize("end", [9, 12, 17, 20, 30])
def test_the_start_of_headers_holds_those_that_stand_whole_in_it(end: int) -> None:
    text = json.dumps({"a": "1", "b": 'x",y', "c": None, "d": "4"})
    found = long_headers.start_of(text[:end])
    assert found.items() <= json.loads(text).items()
    assert ("a" in found) == (end > 9)

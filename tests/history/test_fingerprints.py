"""Is it the same failure? Traces written out, and which of them stand for one."""

from typing import Any

import pytest

from pgqueue_admin.formatting import stack_traces
from pgqueue_admin.history.spark.transforms.fingerprints import fingerprinted
from tests.history.raw_rows import failed, raw

pytestmark = pytest.mark.spark


def test_one_failure_has_one_fingerprint(spark: Any) -> None:
    trace = "   at System.Linq.First()\n   at Shop.Gateway.Charge(Card c) in G.cs:line {}\n   at NServiceBus.X()"
    rows = [
        failed("Card 'a' of order 1 refused", trace.format(7)),
        failed("Card 'b' of order 22 refused", trace.format(9)),
        failed("Card 'a' of order 1 refused", "   at Other.Place()"),
    ]
    first, second, third = (row.fingerprint for row in fingerprinted(raw(spark, *rows)).collect())
    assert first == second != third
    assert len(first) == 16


SAME = [
    ("Couldn't find customer 'abc'", "Couldn't find customer 'xyz'"),
    ("'O'Hara' isn't known", "'D'Arcy' isn't known"),
    ("duplicate key (N'abc')", "duplicate key (N'x y')"),
    ("order 507f1f77bcf86cd799439011 is gone", "order 5ac2f1d0e77bcf86cd799439 is gone"),
    ("invoice 01ARZ3NDEKTSV4RRFFQ69G5FAV is gone", "invoice 01BX5ZZKBKACTAV9WEVGEMMVRZ is gone"),
    ("order 123456789012 is late", "order 7 is late"),
    ('no "a", no “b”', 'no "c d", no “”'),
    ("{6f9619ff-8b86-d011-b42d-00c04fc964ff}", "{6F9619FF8B86D011B42D00C04FC964F0}"),
]
OTHERS = [
    "Couldn't find it, it isn't there",
    "Couldn't find them, it isn't there",
    "defaced",
    "INTERNATIONALIZATIONFAULTS",
]


def test_what_varies_in_a_message_is_no_part_of_it(spark: Any) -> None:
    """Ids of several kinds, quoted texts and numbers; an apostrophe is no quotation mark."""
    rows = [failed(message, "no frame") for pair in SAME for message in pair]
    found = [row.fingerprint for row in fingerprinted(raw(spark, *rows)).collect()]
    pairs = dict(zip(SAME, zip(found[::2], found[1::2], strict=True), strict=True))
    assert {pair: prints for pair, prints in pairs.items() if len(set(prints)) > 1} == {}
    others = [row.fingerprint for row in fingerprinted(raw(spark, *[failed(each, "") for each in OTHERS])).collect()]
    assert len({*found, *others}) == len(SAME) + len(OTHERS)


def test_a_python_failure_is_told_by_its_last_own_frame(spark: Any) -> None:
    trace = 'Traceback (most recent call last):\n  File "/app/shop.py", line {}, in charge\n    boom()\nValueError: x'
    rows = [failed("x", trace.format(number)) for number in (1, 2)]
    first, second = (row.fingerprint for row in fingerprinted(raw(spark, *rows)).collect())
    assert first == second


OWN_FRAMES = [
    ("   at System.Linq.First()\n   at Shop.Pay(Card c) in P.cs:line 1\n   at Shop.Later()", "   at Shop.Pay()"),
    ("   at lambda_method1(Closure)\n\n   at Shop.Pay()\r\n   at Shop.Later()", "   at Shop.Pay"),
    ("not indented\nat Shop.No()\n--- End ---\n   at Shop.Pay()", "   at Shop.Pay()"),
    ('  File "/app/a.py", line 1, in first\n  File "/app/b.py", line 2, in last\nE: x', '  File "b", in last'),
    ('  File "/app/a.py", line 1, in own\n  File "/usr/lib/python3.11/b.py", line 2, in last', '  File "a", in own'),
    ('  File "/x/site-packages/b.py", line 2, in last\n   at System.Only()', "no frame"),
]


def test_a_trace_stands_for_its_own_frame(spark: Any) -> None:
    """Each pair has one fingerprint, and none has that of another."""
    rows = [failed("x", trace) for pair in OWN_FRAMES for trace in pair]
    found = [row.fingerprint for row in fingerprinted(raw(spark, *rows)).collect()]
    pairs = list(zip(found[::2], found[1::2], strict=True))
    assert all(long == short for long, short in pairs)
    assert len({long for long, _ in pairs[2:]}) == len(pairs) - 2


def test_a_message_of_many_pages_hides_no_frame(spark: Any) -> None:
    """.NET says it once more in front of its frames; where nobody does, the trace is looked at from its beginning."""
    message = "Stock answered " + "<p>" * 5_000
    deep = "".join(f"   at System.Frame{number}()\n" for number in range(400))
    places = [f"{deep}   at Shop.{place}.Reserve()" for place in ("Orders", "Returns")]
    rows = [failed(message, f"Refused: {message}\n{place}") for place in places]
    rows += [failed(message, "   at Shop.Orders.Reserve()")]
    orders, returns, alone = (row.fingerprint for row in fingerprinted(raw(spark, *rows)).collect())
    assert orders == alone != returns


FRAMES = {
    "framework": [
        "   at NServiceBus.X()",
        "   at lambda_method1(Closure)",
        '  File "/x/dist-packages/b.py", line 2, in last',
        '  File "/usr/lib/python3.11/b.py", line 2, in last',
        '  File "<frozen codecs>", line 322, in decode',
        '  File "/srv/pgqueue_admin/transport/endpoint.py", line 2, in last',
    ],
    "own": [
        "   at Shop.System.Pay()",
        '  File "/srv/pgqueue_admin/demo/handlers.py", line 2, in last',
        '  File "<string>", line 1, in last',
    ],
}


def test_pages_fold_the_frames_that_no_failure_is_told_by(spark: Any) -> None:
    frames = [(kind, frame) for kind, some in FRAMES.items() for frame in some]
    rows = [failed("x", trace) for trace in ("no frame", *(frame for _, frame in frames))]
    none, *found = fingerprinted(raw(spark, *rows)).collect()
    for (kind, frame), row in zip(frames, found, strict=True):
        assert [line.kind for line in stack_traces.read(frame)] == [kind], frame
        assert (row.fingerprint == none.fingerprint) == (kind == "framework"), frame

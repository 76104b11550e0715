"""Failures, and which of them share a fingerprint: cases for the archive's function and for history's."""

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
OWN_FRAMES = [
    ("   at System.Linq.First()\n   at Shop.Pay(Card c) in P.cs:line 1\n   at Shop.Later()", "   at Shop.Pay()"),
    ("   at lambda_method1(Closure)\n\n   at Shop.Pay()\r\n   at Shop.Later()", "   at Shop.Pay"),
    ("not indented\nat Shop.No()\n--- End ---\n   at Shop.Pay()", "   at Shop.Pay()"),
    ('  File "/app/a.py", line 1, in first\n  File "/app/b.py", line 2, in last\nE: x', '  File "b", in last'),
    ('  File "/app/a.py", line 1, in own\n  File "/usr/lib/python3.11/b.py", line 2, in last', '  File "a", in own'),
    ('  File "/x/site-packages/b.py", line 2, in last\n   at System.Only()', "no frame"),
]
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

MESSAGE = "Stock answered " + "<p>" * 5_000
_DEEP = "".join(f"   at System.Frame{number}()\n" for number in range(400))
LONG_MESSAGES = [f"Refused: {MESSAGE}\n{_DEEP}   at Shop.{place}.Reserve()" for place in ("Orders", "Returns")]

# messages and traces that other programs may write
HOSTILE = [
    (None, None),
    ("", ""),
    ("\N{GREEK SMALL LETTER ALPHA}123456789abc \N{BUG}'x'\N{BUG}", "   at \N{GREEK SMALL LETTER ALPHA}.b()"),
    ("'" * 5000, "   at A.B()\r\n   at C.D()"),
    ("“" * 5000, '\x0b\x0c File "/a.py", line 1, in \N{GREEK SMALL LETTER ALPHA}'),
    ("x\u2028at\x85y 12", "x\u2028   at A.B()\x85   at C.D()"),
    ("$1 \\1 {0} %s 0x7FFF", '  File "/a.py", line 1\n  File "/b.py", line 2, in in in b '),
    ("١٢٣ 42", "\n\n   at (A)"),
]

"""Identifies a failure by its exception type, its first frame in the user's code, and its message without variable
parts.

The archive, the console and history group failures by this rule. Python and Java (Spark) must read its expressions
alike, so they have no groups but the captured ones. Fingerprints are stored: changing an expression splits a failure
into one before and one after.
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

# Framework frames of a stack trace: pages fold them, and history tells failures apart by the others.
# Python and Java (Spark) must read them alike; they capture no groups. Fingerprints are stored: a change here splits a
# failure whose trace has such a frame into one before and one after.
NET = r"(?:NServiceBus|System|Microsoft|Npgsql|Newtonsoft)\.|lambda_method"  # prefixes of calls
PACKAGES = r"/(?:site|dist)-packages/"
PYTHON_ITSELF = r"/lib/python\d|<frozen "
ENGINE = r"pgqueue_admin/(?:transport|workers|archive|dialects)/"
PYTHON = f"{PACKAGES}|{PYTHON_ITSELF}|{ENGINE}"  # parts of paths


DIGITS = 16  # of a fingerprint, hexadecimal
TRACE_MOST = 20_000  # characters of a stack trace that are searched, from either end
LONGEST = 200  # characters of a folded message
LOOKED_AT = 4000  # characters of a message that are read: an unclosed quotation mark scans all that follows

NET_FRAME = rf"^[^\S\n]+at (?!{NET})([^(\n]*)"
PYTHON_FRAME = rf'^[^\S\n]+File "(?![^\n]*(?:{PYTHON}))(?:[^\n]*in (\S+)[^\S\n]*$)?'
VARIES = [
    (r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}", "<id>"),
    # ULIDs, and hexadecimal ids of at least 12 digits
    (
        r"(?<!\w)(?=\d*[a-fA-F])(?=[a-fA-F]*\d)[0-9a-fA-F]{12,}+(?!\w)"
        r"|(?<!\w)(?=[A-Z]*\d)[0-9A-HJKMNP-TV-Z]{26}(?!\w)",
        "<id>",
    ),
    # an apostrophe between letters is no quotation mark; N precedes texts of SQL Server
    (r"(?<!\w)N?'(?:[^']++|(?<=\w)'(?=\w))*+'(?!\w)|\"[^\"]*\"|“[^”]*”", "<text>"),
    (r"\d+", "<n>"),
]
_FOLDED = [(re.compile(pattern, re.ASCII), stands_for) for pattern, stands_for in VARIES]
_PREFIX = re.compile(r"[A-Za-z_][\w.+]*", re.ASCII)


_DIGITS = re.compile(rf"[0-9a-f]{{{DIGITS}}}", re.ASCII)


def is_fingerprint(text: str) -> bool:
    return _DIGITS.fullmatch(text) is not None


class Fingerprint(NamedTuple):
    """What all failures of one group share. ``frame`` and ``message``: None if there is none."""

    exception: str
    frame: str | None
    message: str | None

    @property
    def digest(self) -> str:
        """``DIGITS`` hexadecimal digits."""
        known = "\n".join(part for part in self if part is not None)
        return sha256(known.encode("utf-8", "replace")).hexdigest()[:DIGITS]


def fingerprint(exception: str, message: str | None, trace: str | None, own_code: tuple[str, ...] = ()) -> Fingerprint:
    """``own_code``: prefixes of namespaces and modules whose frames take precedence."""
    return Fingerprint(exception, own_frame(exception, message, trace, own_code), folded(message))


def folded(message: str | None) -> str | None:
    """The message without ids, quoted texts and numbers."""
    if message is None:
        return None
    message = message[:LOOKED_AT]
    for pattern, stands_for in _FOLDED:
        message = pattern.sub(stands_for, message)
    return message[:LONGEST]


def own_frame(exception: str, message: str | None, trace: str | None, own_code: tuple[str, ...] = ()) -> str | None:
    """The first of .NET's frames, which start with the latest call; the last of Python's."""
    if not trace:
        return None
    said = len(message) if message is not None and trace.startswith(f"{exception}: {message}") else 0
    # skip the message, which .NET repeats before its frames: a long one would hide them all
    net, python = trace[said : said + TRACE_MOST], trace[-TRACE_MOST:]
    for net_frame, python_frame in _readers(own_code):
        if found := net_frame.search(net):
            return found[1]
        if calls := python_frame.findall(python):
            return str(calls[-1])
    return None


def frames(own_code: tuple[str, ...]) -> list[tuple[str, str]]:
    """Expressions for .NET and Python frames, preferred ones first. Each captures the call."""
    ours = [prefix for prefix in own_code if is_prefix(prefix)]
    if not ours:
        return [(NET_FRAME, PYTHON_FRAME)]
    net = "|".join(re.escape(prefix) for prefix in ours)
    python = "|".join(re.escape(prefix.rstrip(".")).replace(r"\.", r"[/\\]") for prefix in ours)
    return [
        (
            rf"^[^\S\n]+at ((?:{net})[^(\n]*)",
            rf'^[^\S\n]+File "(?=(?:[^"\n]*[/\\])?(?:{python})(?:[/\\]|\.py"))(?:[^\n]*in (\S+)[^\S\n]*$)?',
        ),
        (NET_FRAME, PYTHON_FRAME),
    ]


def is_prefix(text: str) -> bool:
    """Whether it is a prefix of a namespace or module name: ``Shop.``, ``shop.billing``."""
    return bool(_PREFIX.fullmatch(text))


@lru_cache(maxsize=8)
def _readers(own_code: tuple[str, ...]) -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    how = re.ASCII | re.MULTILINE
    return [(re.compile(net, how), re.compile(python, how)) for net, python in frames(own_code)]

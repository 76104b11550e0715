"""A mail's subject: environment, severity, queue, fact, cause and target in 78 characters, whatever the names hold."""

import re
import unicodedata

LONGEST = 78
_SHORTEST = 8
# what an address is known by: the colon of https://, www's dot, the @ between two names
_ADDRESS = re.compile(r"(?<=\w):(?=//)|(?<=\bmailto):|(?<=\bwww)\.|(?<=\w)@(?=\w)", re.IGNORECASE)


def one_line(text: str) -> str:
    """Controls, line ends, separators and bidi marks become spaces: a name can add no header and turn no line."""
    kept = "".join(" " if unicodedata.category(mark)[0] == "C" or mark in "\u2028\u2029" else mark for mark in text)
    return " ".join(kept.split())


def unlinked(text: str) -> str:
    """On one line, and with no address that a mail reader would make a link of: who names a message type writes to all
    who are on call, in our name. Our own links stand in lines of their own."""
    return _ADDRESS.sub(lambda found: f"[{found[0]}]", one_line(text))


def clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(1, length - 1)].rstrip() + "…"


def compose(environment: str, state: str, before: str, queue: str, middle: str, cause: str, after: str = "") -> str:
    """``[production] critical: Billing 24 dead (GatewayTimeout), target 0, since 02:47``.

    What is too long is taken from the cause first, then from the queue, then from the environment.
    """
    names = [one_line(name) for name in (cause, queue, environment or "unnamed")]
    rest = [one_line(part) for part in (state, before, middle, after)]
    line = _line(names, rest)
    for place in range(len(names)):
        excess = len(line) - LONGEST
        if excess > 0:
            names[place] = clip(names[place], max(_SHORTEST, len(names[place]) - excess))
            line = _line(names, rest)
    if len(line) > LONGEST:
        line = _line(["", *names[1:]], rest)
    return clip(line, LONGEST)


def _line(names: list[str], rest: list[str]) -> str:
    cause, queue, environment = names
    state, before, middle, after = rest
    parts = (f"[{environment}] {state}:", before, queue, middle, cause and f"({cause})", after)
    text = " ".join(part for part in parts if part)
    return text.replace(" ,", ",")

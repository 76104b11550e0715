"""Stack traces of .NET and Python, line by line: separates the user's code from frameworks."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from pgqueue_admin.formatting import fingerprint
from pgqueue_admin.formatting.names import listed

LONGEST_LINE = 2_000  # characters; longer lines come from no compiler, and are not parsed as frames
MOST_LINES = 2_000

_PYTHON_FRAME = re.compile(r'\s+File "(?P<path>.*)", line (?P<line>\d+)(?:, in (?P<call>.*))?\s*')
_CAUSE = re.compile(r"\s*---> (?P<text>.*)")
_CHAINED = re.compile(r"(The above exception was the direct cause|During handling of the above exception).*")
_END_OF_INNER = re.compile(r"\s*--- End of .*---\s*")
_NET_FRAMEWORK = re.compile(fingerprint.NET)
_PYTHON_PACKAGE = re.compile(rf"{fingerprint.PACKAGES}([^/]*?)(?:\.py)?(?:/|$)")
_PYTHON_ITSELF = re.compile(fingerprint.PYTHON_ITSELF)
_ENGINE = re.compile(fingerprint.ENGINE)


class StackFrame(NamedTuple):
    """``kind``: own or framework (a frame), cause, code, or text. ``owner`` names the framework."""

    kind: str
    text: str
    where: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class FrameRun:
    """Adjacent lines of one kind; framework frames are folded under ``title``."""

    kind: str
    lines: list[StackFrame] = field(default_factory=list)

    @property
    def title(self) -> str:
        owners = list(dict.fromkeys(line.owner for line in self.lines if line.owner))
        count = sum(line.kind == "framework" for line in self.lines)
        return f"{count} {'frame' if count == 1 else 'frames'} of {listed(owners)}"


def runs(trace: str) -> list[FrameRun]:
    """The trace for reading; lines before the first frame are the error's own text and left out."""
    lines = list(_without_preamble(list(read(trace))))
    return [FrameRun(kind, list(group)) for kind, group in groupby(lines, _fold)]


def read(trace: str) -> Iterator[StackFrame]:
    """Every non-empty line of the trace. Never raises: lines that are no frame are text."""
    lines, owner = trace.splitlines(), ""
    for raw in lines[:MOST_LINES]:
        line = _line(raw)
        if line is None:
            continue
        if line.kind == "code":
            line = line._replace(owner=owner)  # a source line belongs to the frame above it
        else:
            owner = line.owner
        yield line
    if len(lines) > MOST_LINES:
        yield StackFrame("text", f"… {len(lines) - MOST_LINES:,} more lines under Full trace")


def frames(trace: str) -> int:
    return sum(line.kind in {"own", "framework"} for line in read(trace))


def _fold(line: StackFrame) -> str:
    return "framework" if line.owner else line.kind if line.kind != "code" else "own"


def _without_preamble(lines: list[StackFrame]) -> list[StackFrame]:
    start = next((at for at, line in enumerate(lines) if line.kind != "text"), 0)
    return lines[start:]


def _line(raw: str) -> StackFrame | None:
    if len(raw) <= LONGEST_LINE:
        if frame := _net(raw):
            return frame
        for pattern, made in _READERS:
            if match := pattern.fullmatch(raw):
                return made(match)
    return StackFrame("text", raw.strip()) if raw.strip(" \t^~") else None


def _net(raw: str) -> StackFrame | None:
    """``   at Call(...) in path:line 42``. Parsed by hand: a lazy regex would be quadratic on untrusted input."""
    frame = raw.strip()
    if not raw[0:1].isspace() or not frame.startswith("at ") or frame[3:4].isspace():
        return None
    call, path, number = _called_where(frame[3:])
    owner = _net_owner(call)
    return StackFrame("framework" if owner else "own", call, _where(path, number), owner)


def _called_where(frame: str) -> tuple[str, str, str]:
    before, _, number = frame.rpartition(":line ")
    call, within, path = before.partition(" in ")
    return (call, path, number) if call and within and number.isdecimal() else (frame, "", "")


def _python(match: re.Match[str]) -> StackFrame:
    owner, where = _python_owner(match["path"]), _where(match["path"], match["line"])
    return StackFrame("framework" if owner else "own", match["call"] or "<module>", where, owner)


def _net_owner(call: str) -> str:
    if known := _NET_FRAMEWORK.match(call):
        return known[0][:-1] if known[0].endswith(".") else ".NET"  # a namespace, or code that .NET compiled
    return ""


def _python_owner(path: str) -> str:
    if package := _PYTHON_PACKAGE.search(path):
        return package[1] or "Python"
    if _PYTHON_ITSELF.search(path):
        return "Python"
    return "the engine" if _ENGINE.search(path) else ""


def _where(path: str, number: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{number}" if name else ""


def _nothing(_match: re.Match[str]) -> None:
    return None


_READERS: list[tuple[re.Pattern[str], Callable[[re.Match[str]], StackFrame | None]]] = [
    (_PYTHON_FRAME, _python),
    (_CAUSE, lambda match: StackFrame("cause", match["text"])),
    (_CHAINED, lambda match: StackFrame("text", match[0])),
    (_END_OF_INNER, _nothing),
    (re.compile(r"\s*Traceback \(most recent call last\):\s*"), _nothing),
    (re.compile(r"    \s*(?P<code>\S.*)"), lambda match: _code(match)),
]


def _code(match: re.Match[str]) -> StackFrame | None:
    return StackFrame("code", match["code"]) if match["code"].strip("^~ ") else None

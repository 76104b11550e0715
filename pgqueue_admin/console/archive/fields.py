"""The fields of a search, and the values that each accepts."""

import re
from collections.abc import Callable, Iterable
from string import hexdigits

from pgqueue_admin.archive.search_condition import LAST
from pgqueue_admin.archive.search_terms import Node, Span, Term
from pgqueue_admin.console.archive import measures
from pgqueue_admin.console.archive.measures import Bounds, Wrong
from pgqueue_admin.console.archive.tokens import SearchSyntaxError
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting.fingerprint import DIGITS
from pgqueue_admin.models import failure_group, queue_lookup

STATES = ("dead", "retried", "succeeded", "dead_again", "discarded")
RESULTS = ("success", "unsuccessful", "failed", "rejected", "lock_expired")
KINDS = ("message", "transport", "control", "lease")
OUTCOMES = ("done", "skipped", "failed")  # of a message in an operation
_DEEPEST = 20  # keys of a path
_NONE = '=""'
_PHRASE = re.compile(r'"((?:[^"]|"")*)"')
# possessive, since quotation marks can pair up in so many ways
_FIELD = re.compile(r'(?P<name>(?:header|body)\.(?:"(?:[^"]|"")*+"|[^\s":()])++|[A-Za-z_.]+):', re.IGNORECASE)
_KEY = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')

Reader = Callable[[str, str], Node]  # field as named, value as typed


def term(text: str, at: int, names: Iterable[str] = ()) -> Node:
    """Read a word, or a field with its value. Raises SearchSyntaxError.

    ``names``: the fields of a list, if they differ from the archive's.
    """
    found = _FIELD.match(text)
    try:
        return _of_field(found["name"], text[found.end() :], names or NAMES) if found else _word(text)
    except Wrong as error:
        raise SearchSyntaxError(text, str(error), at) from None


def is_field(text: str) -> bool:
    """Whether the text begins with a known field."""
    found = _FIELD.match(text.lstrip("-("))
    return found is not None and _reader(found["name"]) is not None


def _of_field(name: str, value: str, names: Iterable[str]) -> Node:
    reader = _reader(name)
    if reader is None:
        raise Wrong(f"There is no field {name.lower()}:. Use one of {', '.join(f'{each}:' for each in names)}.")
    if not value:
        raise Wrong(f"put the value right after {name.lower()}: without a space.")
    return reader(name, value)


def _reader(name: str) -> Reader | None:
    head, dot, _ = name.partition(".")
    return _WITH_PATH.get(head.lower()) if dot else _READERS.get(name.lower())


def _word(text: str) -> Term:
    if not (word := _unquoted(text)):
        raise Wrong("there is no word in it. A phrase stands between two quotes.")
    if text.endswith("*"):
        raise Wrong("a word is found anywhere in a text. Leave the *, or quote it.")
    return Term("", word)


def _unquoted(value: str) -> str:
    """Remove a phrase's quotes and halve doubled quotes inside it. An address keeps the quotes of its parts."""
    if phrase := _PHRASE.fullmatch(value):
        return phrase[1].replace('""', '"')
    return value.strip('"') if value.count('"') <= 2 and value.startswith('"') else value


def _one_of(allowed: tuple[str, ...]) -> Reader:
    def reader(field: str, value: str) -> Term:
        value = _unquoted(value.removeprefix("="))
        if value not in allowed:
            raise Wrong(f"{value} is not one of {', '.join(allowed)}.")
        return Term(field.lower(), value, "is")

    return reader


def _name(otherwise: str = "has", *, may_be_none: bool = False) -> Reader:
    """``Boom``: the field's default match; ``=Boom``: exact; ``Boom*``: prefix; ``=""``: no name."""

    def reader(field: str, given: str) -> Term:
        value, how = _how(given, otherwise)
        if not value and not (may_be_none and given == _NONE):
            hint = f" What has none is found by {_NONE}." if may_be_none else ""
            raise Wrong(f"there is no name in it.{hint}")
        return Term(field.lower(), value, how)

    return reader


def _how(given: str, otherwise: str) -> tuple[str, str]:
    if given.startswith("="):
        return _unquoted(given[1:]), "is"
    return (_unquoted(given[:-1]), "starts") if given.endswith("*") else (_unquoted(given), otherwise)


named = _name()  # for a list with a field of its own


def _text(field: str, value: str) -> Term:
    if not (text := _unquoted(value)):
        raise Wrong(f"put the value right after {field.lower()}: without a space.")
    return Term(field.lower(), text)


def _queue(field: str, given: str) -> Term:
    value, how = _how(given, "is")
    if how == "starts":
        if not value or '"' in value:
            raise Wrong("write the beginning of a table's name before the *, without quotation marks.")
        return Term("queue", value, how)
    if not value:
        raise Wrong(f"put the value right after {field.lower()}: without a space.")
    try:
        return Term("queue", queue_lookup.canonical(value), "is")
    except AddressUnreadable as error:
        raise Wrong(str(error)) from error


def _id(field: str, given: str) -> Term:
    found = _name("is")(field, given)
    if found.value.isdecimal() and "=" not in given:  # type: ignore[union-attr]
        raise Wrong("id: takes a message id; type an archive number into the box at the top.")
    return found  # type: ignore[return-value]


def _fingerprint(field: str, given: str) -> Term:
    """A failure's fingerprint, as in its page's URL."""
    value = _unquoted(given.removeprefix("="))
    if len(value) != DIGITS or set(value) - set(hexdigits.lower()):
        raise Wrong(f"a failure is named by {DIGITS} digits, as on its page under Failures.")
    return Term("fp", value, "is")


def _owner(field: str, given: str) -> Term:
    value = _unquoted(given.removeprefix("="))
    if not value:
        raise Wrong("put the name of a failure's owner right after it.")
    return Term("owner", value, "is", keys=tuple(failure_group.owned_by(value)))


def _operation(field: str, given: str) -> Term:
    """``418``: its whole set; ``418/last``: without a later decision; ``418/skipped``: with this outcome in it."""
    number, _, what = given.partition("/")
    if parse_int(number) is None or what not in ("", LAST[1:], *OUTCOMES) or given.endswith("/"):
        others = ", ".join(f"418/{each}" for each in OUTCOMES)
        raise Wrong(f"{given} is not the number of an operation. Try 418, 418{LAST}, {others}.")
    return Term("op", f"{parse_int(number)}/{what}" if what else str(parse_int(number)))


def _header(name: str, given: str) -> Term:
    path = _keys(name.partition(".")[2], 1)
    value, how = _how(given, "has")
    return _with_value(Term("header", value, how, path), given)


def _body_path(name: str, given: str) -> Term:
    value, how = _how(given, "has")
    return _with_value(Term("body", value, how, _keys(name.partition(".")[2], _DEEPEST)), given)


def _with_value(found: Term, given: str) -> Term:
    if not found.value and given != _NONE:
        raise Wrong(f"put the value right after it, without a space. An empty one is found by {_NONE}.")
    return found


def _keys(path: str, most: int) -> tuple[str, ...]:
    """A header has one key, even with dots in its name."""
    if most == 1 and _unquoted(path):
        return (_unquoted(path),)
    keys, at = list[str](), 0
    while found := _KEY.match(path, at):
        keys.append(found[1].replace('""', '"') if found[1] is not None else found[2])
        at = found.end() + 1
        if path[found.end() : at] not in ("", "."):
            break
    if at != len(path) + 1 or len(keys) > most:
        raise Wrong(
            f"{path} is no path. Write keys with dots between them, at most {most}: customer.name, lines.0.price."
        )
    return tuple(keys)


def _span(field: str, read: Callable[[str], Bounds], of: str = "") -> Reader:
    def reader(_name: str, given: str) -> Span:
        value = _unquoted(given)
        return Span(of or field, f"{field}:{given}", *read(value))

    return reader


def _since(_field: str, given: str) -> Span:
    return Span("died", f"since:{given}", low=_moment(given))


def _until(_field: str, given: str) -> Span:
    return Span("died", f"until:{given}", high=_moment(given))


def _moment(given: str) -> str | float:
    value = _unquoted(given)
    return measures.seconds(value) if measures.is_duration(value) else measures.instant(value).isoformat()


_READERS: dict[str, Reader] = {
    "state": _one_of(STATES),
    "queue": _queue,
    "type": _name(may_be_none=True),
    "error": _name(may_be_none=True),
    "message": _name(),
    "headers": _text,
    "body": _text,
    "endpoint": _name("is"),
    "host": _name("is"),
    "id": _id,
    "conversation": _name("is"),
    "result": _one_of(RESULTS),
    "kind": _one_of(KINDS),
    "attempts": _span("attempts", lambda value: measures.bounds(value, measures.number)),
    "age": _span("age", measures.age, "died"),
    "sent": _span("sent", measures.times),
    "died": _span("died", measures.times),
    "since": _since,
    "until": _until,
    "size": _span("size", lambda value: measures.bounds(value, measures.size)),
    "owner": _owner,
    "fp": _fingerprint,
    "op": _operation,
}
_WITH_PATH: dict[str, Reader] = {"header": _header, "body": _body_path}
NAMES = (*_READERS, "header.NAME", "body.path.to")

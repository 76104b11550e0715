"""Finds hidden parts of a JSON text on its tokens: numbers stay unparsed, and the rest stays as written."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from pgqueue_admin.formatting import json_tokens
from pgqueue_admin.formatting.json_tokens import NotJson
from pgqueue_admin.services.masking import text as texts
from pgqueue_admin.services.masking.json_path import JsonPath, Places
from pgqueue_admin.services.masking.rule import Rule
from pgqueue_admin.services.masking.text import HiddenSpan, MaskingDeadline

_BLANK = " \t\n\r"
VALUE, FIRST_ELEMENT, KEY, FIRST_KEY, COLON, COMMA, END = range(7)  # what may follow


@dataclass(slots=True)
class _Frame:
    """An open object or list. ``hidden``: the rule that hides all of it, and where it began."""

    bracket: str
    places: tuple[Places, ...]
    hidden: tuple[Rule, int] | None


def hidden(text: str, rules: Sequence[Rule], patience: MaskingDeadline) -> list[HiddenSpan]:
    """Return the hidden spans in order. Raises NotJson, TooSlow."""
    walk = _Walk(text, rules, patience)
    return walk.run()


class _Walk:
    def __init__(self, text: str, rules: Sequence[Rule], patience: MaskingDeadline):
        self._text, self._patience = text, patience
        self._by_path: list[tuple[Rule, JsonPath]] = [(rule, rule.path) for rule in rules if rule.path]
        self._names = {name for _, path in self._by_path for name in path.names}
        self._steps: dict[tuple[tuple[Places, ...], str | None], tuple[tuple[Places, ...], Rule | None]] = {}
        self._by_regex = [rule for rule in rules if rule.regex is not None]
        self._stack: list[_Frame] = []
        self._places: tuple[Places, ...] = tuple(path.start for _, path in self._by_path)
        self._hides: Rule | None = None  # the rule that hides the next value
        self._key = ""
        self._next = VALUE
        self._within = 0  # open frames that are hidden as a whole, and those in them
        self._found: list[HiddenSpan] = []
        self._starts: list[int] = []  # of names and values; their ends follow
        self._ends: list[int] = []

    def run(self) -> list[HiddenSpan]:
        at = 0
        for match in json_tokens.TOKEN.finditer(self._text):
            if self._text[at : match.start()].strip(_BLANK):
                raise NotJson
            at = match.end()
            self._take(match[0], match.start(), at)
        if self._next != END or self._text[at:].strip(_BLANK):
            raise NotJson
        return self._with_matches_of_the_text()

    def _take(self, token: str, start: int, end: int) -> None:
        if token in ("{", "["):
            self._open(token, start)
        elif token in ("}", "]"):
            self._close(token, end)
        elif token == ":":
            self._expect(COLON)
            self._next = VALUE
        elif token == ",":
            self._expect(COMMA)
            self._next = KEY if self._stack[-1].bracket == "{" else VALUE
            self._begin_element()
        elif self._next in (KEY, FIRST_KEY):
            self._name(token, start, end)
        else:
            self._scalar(token, start, end)

    def _open(self, token: str, start: int) -> None:
        self._expect(VALUE, FIRST_ELEMENT)
        hides = (self._hides, start) if self._hides and not self._within else None
        self._within += bool(self._within or hides)
        self._stack.append(_Frame(token, self._places, hides))
        self._hides, self._key = None, ""
        self._next = FIRST_KEY if token == "{" else FIRST_ELEMENT

    def _close(self, token: str, end: int) -> None:
        self._expect(COMMA, FIRST_KEY if token == "}" else FIRST_ELEMENT)
        if not self._stack or self._stack[-1].bracket != {"}": "{", "]": "["}[token]:
            raise NotJson
        frame = self._stack.pop()
        self._within -= bool(self._within)
        if frame.hidden:
            rule, start = frame.hidden
            self._found.append(HiddenSpan(start, end, _text_of(rule)))
        self._end_value()

    def _name(self, token: str, start: int, end: int) -> None:
        name = json_tokens.text_of(token)
        self._patience.check()
        self._places, self._hides = self._step(self._stack[-1].places, name)
        self._key = token
        if not self._within:
            self._look_at(token, name, start, end)
        self._next = COLON

    def _step(self, places: tuple[Places, ...], name: str) -> tuple[tuple[Places, ...], Rule | None]:
        """Return each path's places within such a field, and the rule that hides it. Names in no path share a cache
        key.
        """
        folded = name.casefold()
        key = places, folded if folded in self._names else None
        if key not in self._steps:
            after = tuple(path.step(place, name) for (_, path), place in zip(self._by_path, places, strict=True))
            ended = (rule for (rule, path), place in zip(self._by_path, after, strict=True) if path.ends(place))
            self._steps[key] = after, next(ended, None)
        return self._steps[key]

    def _scalar(self, token: str, start: int, end: int) -> None:
        self._expect(VALUE, FIRST_ELEMENT)
        if token.startswith('"'):
            said = json_tokens.text_of(token)
        elif json_tokens.WORD.fullmatch(token):
            said = token
        else:
            raise NotJson
        if not self._within:
            if self._hides:
                self._found.append(HiddenSpan(start, end, _text_of(self._hides)))
            else:
                self._look_at(token, said, start, end)
        self._end_value()

    def _look_at(self, token: str, said: str, start: int, end: int) -> None:
        """Search a name or a value by itself, and a value beside its name, as pages show both."""
        self._starts.append(start)
        self._ends.append(end)
        if not self._by_regex:
            return
        spans = texts.found(said, self._by_regex, self._patience)
        if spans and token.startswith('"'):
            self._found.append(HiddenSpan(start, end, json.dumps(texts.replaced(said, spans), ensure_ascii=False)))
        elif spans:
            self._found.append(HiddenSpan(start, end, _quoted(spans[0].bar)))
        elif self._next in (VALUE, FIRST_ELEMENT) and self._key:
            beside = texts.found(f"{self._key}: {token}", self._by_regex, self._patience)
            if beside:
                self._found.append(HiddenSpan(start, end, _quoted(beside[0].bar)))

    def _end_value(self) -> None:
        self._hides, self._next = None, COMMA if self._stack else END

    def _begin_element(self) -> None:
        frame = self._stack[-1]
        self._places, self._hides = frame.places, None
        if frame.bracket == "{":
            self._key = ""

    def _expect(self, *these: int) -> None:
        if self._next not in these:
            raise NotJson

    def _with_matches_of_the_text(self) -> list[HiddenSpan]:
        """Hide each name and value that a match across tokens touches."""
        known = {each.start: each for each in self._found}
        for match in texts.found(self._text, self._by_regex, self._patience):
            place = max(0, bisect_right(self._starts, match.start) - 1)
            while place < len(self._starts) and self._starts[place] < match.end:
                start, end = self._starts[place], self._ends[place]
                place += 1
                if end <= match.start:
                    continue
                is_in_token = start <= match.start and match.end <= end
                if not is_in_token or start not in known or "\\" in self._text[start:end]:
                    known[start] = HiddenSpan(start, end, _quoted(match.bar))
        return sorted(known.values())


def _text_of(rule: Rule) -> str:
    return _quoted(rule.bar)


def _quoted(bar: str) -> str:
    """Quote the bar as a JSON string, so that the masked text can still be formatted as JSON."""
    return f'"{bar}"'

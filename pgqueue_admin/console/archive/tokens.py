"""Splits a search into terms, brackets, OR and minus signs, each with its position."""

import re
from collections.abc import Iterator
from typing import Any

from lark import Token
from lark.lexer import Lexer, LexerState

MOST_LETTERS = 10_000
MOST_WORDS = 20  # each is searched in each message: a pasted page would occupy the database for its whole time limit
DEEPEST = 10  # levels of nested brackets
_SPACE = re.compile(r"\s*")
_PIECE = re.compile(r'"(?P<quoted>(?:[^"]|"")*)(?P<end>"?)|[^\s"()]+|[()]')
_JOINING = {
    "AND": "every term must hold anyway. Leave AND out, or quote it to search for the word.",
    "NOT": "write - right before what is excluded, or quote it to search for the word.",
}


class SearchSyntaxError(ValueError):
    """``wrong`` is the part of the query in error, from ``start`` to ``end``."""

    def __init__(self, wrong: str, why: str, start: int = 0, end: int | None = None):
        self.wrong, self.why, self.start = wrong, why, start
        self.end = start + len(wrong) if end is None else end
        super().__init__(f"{wrong}: {why}")


class SearchLexer(Lexer):
    """The parser's lexer. A bracket inside a word belongs to the word, unless it closes one opened before the word."""

    __future_interface__ = 1  # lex() gets the parser's state, not only the text

    def __init__(self, _conf: object):
        pass

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        return _tokens(str(lexer_state.text))


def _tokens(text: str) -> Iterator[Token]:
    if len(text) > MOST_LETTERS:
        raise SearchSyntaxError(
            f"{len(text):,} letters", f"a search takes at most {MOST_LETTERS:,}.", MOST_LETTERS, len(text)
        )
    at, open_brackets, terms = _space(text, 0), list[int](), list[int]()
    while at < len(text):
        end = at + 1
        if text[at] == "(":
            open_brackets.append(at)
            if len(open_brackets) > DEEPEST:
                raise SearchSyntaxError("(", f"a search takes at most {DEEPEST} brackets in each other.", at)
            yield _token("LPAR", text, at, end)
        elif text[at] == ")":
            if not open_brackets:
                raise SearchSyntaxError(")", "it closes no bracket. Leave it, or quote it.", at)
            open_brackets.pop()
            yield _token("RPAR", text, at, end)
        elif text[at] == "-":
            _refuse_nothing_excluded(text, at)
            yield _token("MINUS", text, at, end)
        else:
            end = _end_of_term(text, at, bool(open_brackets))
            yield _word(text, at, end, terms)
        at = _space(text, end)
    if len(terms) > MOST_WORDS:
        why = f"a search takes at most {MOST_WORDS}. Keep the rarest ones, or quote a phrase."
        raise SearchSyntaxError(f"{len(terms)} words", why, terms[MOST_WORDS], len(text))
    if open_brackets:
        raise SearchSyntaxError("(", "this bracket is not closed.", open_brackets[-1])


def _word(text: str, at: int, end: int, terms: list[int]) -> Token:
    word = text[at:end]
    if word == "OR":
        return _token("OR", text, at, end)
    if word in _JOINING:
        raise SearchSyntaxError(word, _JOINING[word], at)
    terms.append(at)
    return _token("TERM", text, at, end)


def _end_of_term(text: str, at: int, is_in_brackets: bool) -> int:
    own = 0  # brackets opened inside the word
    while piece := _PIECE.match(text, at):
        if piece[0] == ")":
            if not own and is_in_brackets:
                break
            own = max(0, own - 1)
        own += piece[0] == "("
        if piece["quoted"] is not None and not piece["end"]:
            raise SearchSyntaxError(piece[0], "this quotation mark is not closed.", at)
        at = piece.end()
    return at


def _refuse_nothing_excluded(text: str, at: int) -> None:
    following = text[at + 1 : at + 2]
    if not following or following.isspace() or following == ")":
        raise SearchSyntaxError("-", "put what is excluded right after it, without a space; or quote it.", at)
    if following == "-":
        raise SearchSyntaxError("--", "one - excludes. Leave one, or quote what begins so.", at)


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _token(kind: str, text: str, start: int, end: int) -> Token:
    return Token(kind, text[start:end], start_pos=start, end_pos=end)

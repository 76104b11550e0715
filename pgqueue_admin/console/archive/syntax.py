"""Parses a search into a tree: the grammar reads its structure, and each field its own terms."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree, UnexpectedToken

from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Excluded, Node
from pgqueue_admin.console.archive.tokens import SearchLexer, SearchSyntaxError

Parsed = Tree[Token] | Token
ReadTerm = Callable[[str, int], Node]  # a term as typed, and its position


@cache
def _grammar() -> Lark:
    grammar = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=SearchLexer)


def parsed(text: str, read: ReadTerm) -> Iterator[tuple[Node, str, int]]:
    """The terms and groups that must all hold, each with its text and position. Raises SearchSyntaxError."""
    try:
        top = _grammar().parse(text).children[0]
    except UnexpectedToken as error:
        raise _misplaced(error, text) from None
    for each in _joined(top, "all_of"):
        yield _node(each, read), str(each) if isinstance(each, Token) else "", _start(each)


def _joined(parsed: Parsed, by: str) -> Iterator[Parsed]:
    """The operands of one operator. Nested brackets of the same operator change nothing."""
    if isinstance(parsed, Tree) and parsed.data == by:
        for each in parsed.children:
            yield from _joined(each, by)
    else:
        yield parsed


def _node(parsed: Parsed, read: ReadTerm) -> Node:
    if isinstance(parsed, Token):
        return read(str(parsed), parsed.start_pos or 0)
    if parsed.data == "excluded":
        return Excluded(_node(parsed.children[0], read))
    nodes = tuple(_node(each, read) for each in _joined(parsed, parsed.data))
    return AnyOf(nodes) if parsed.data == "any_of" else AllOf(nodes)


def _start(parsed: Parsed) -> int:
    while isinstance(parsed, Tree):
        parsed = parsed.children[0]
    return parsed.start_pos or 0


def _misplaced(error: UnexpectedToken, text: str) -> SearchSyntaxError:
    token = error.token
    if token.type == "OR":
        return SearchSyntaxError(
            "OR", "it stands between two terms. Quote it to search for the word.", token.start_pos or 0
        )
    if token.type == "RPAR":
        return SearchSyntaxError(")", "put a term before it.", token.start_pos or 0)
    after = text.rstrip()
    last = after.split()[-1] if after else ""
    return SearchSyntaxError(last, "put a term after it.", max(0, len(after) - len(last)))

"""What the text index contributes to a search: a condition that finds all matches, and some others."""

import re
from typing import Any

from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Node, Term
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.condition import ConditionBuilder

# Three ASCII letters or digits in a row: letters in every locale, and the shortest text the index finds. All else is
# left to the comparison that follows. Some locales have non-ASCII letters with an ASCII lowercase: K, İ.
_RUN = re.compile(r"[0-9A-Za-z]{3,}")
_NARROW_RUN = re.compile(r"[0-9A-HJLM-Za-hjlm-z]{3,}")
_TEXTS = {"", "message", "headers", "body", "header", "conversation"}
WIDE, NARROW = "index", "index_narrow"  # lane names
LANES = (WIDE, NARROW)


def lane_for(provider: str) -> str:
    """Choose the lane by the provider of the database's collation: only libc folds case exactly as the index does."""
    return WIDE if provider == "c" else NARROW


def chosen(texts: Node, lane: str, most: int, builder: ConditionBuilder) -> str | None:
    """A bracketed query for the ids of possible matches, at most ``most``; None if the index cannot help."""
    found = _written(texts, _RUN if lane == WIDE else _NARROW_RUN, builder)
    if found is None:
        return None
    document = _sql().document.text
    return builder.of(_sql().chosen, builder.any_of([found, builder.of(_sql().is_large, within=document)]), most=most)


def helps(texts: Node, lane: str) -> bool:
    return chosen(texts, lane, 0, ConditionBuilder()) is not None


def _written(node: Node, run: re.Pattern[str], builder: ConditionBuilder) -> str | None:
    match node:
        case AllOf(nodes=nodes):
            some = [text for each in nodes if (text := _written(each, run, builder))]
            return builder.all_of(some) if some else None
        case AnyOf(nodes=nodes):
            every = [_written(each, run, builder) for each in nodes]
            return builder.any_of(text for text in every if text) if all(every) else None
        case Term(field=field, value=value, path=path) if field in _TEXTS and not (field == "body" and path):
            if runs := run.findall(value):
                return builder.of(_sql().holds, within=_sql().document.text, like=f"%{'%'.join(runs)}%")
    return None


def _sql() -> Any:
    return postgresql().text_index

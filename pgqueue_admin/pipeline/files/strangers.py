"""Folders of attempts and compactions that this ledger never began: of another console, or of what a backup forgot."""

import re
from collections.abc import Container, Sequence
from pathlib import Path
from uuid import UUID

from pgqueue_admin.pipeline.files.places import token_of
from pgqueue_admin.records.models import HistoryBatch, HistoryCompaction

_ATTEMPT = re.compile(r"batch-(\d+)-")


def among(places: Sequence[Path]) -> list[Path]:
    """Asked after they were found: whoever writes has a token in the ledger before there is a folder."""
    tokens = {place: token for place in places if (token := token_of(place))}
    attempts = {place: int(found[1]) for place in tokens if (found := _ATTEMPT.match(place.name))}
    compacted = {token: place for place, token in tokens.items() if place.name.startswith("table-")}
    began = HistoryCompaction.objects.filter(token__in=list(compacted)).values_list("token", flat=True)
    strange = [compacted[token] for token in compacted.keys() - set(began)]
    noted = _noted(set(attempts.values()))
    strange += [place for place, number in attempts.items() if tokens[place] not in noted.get(number, ())]
    return sorted(strange)


class _Any:
    """Of a batch that a driver of an older version tried: not all of its attempts are noted."""

    def __contains__(self, token: object) -> bool:
        return True


def _noted(batches: set[int]) -> dict[int, Container[UUID]]:
    """The attempts of these batches."""
    known = HistoryBatch.objects.filter(pk__in=batches).values_list("pk", "attempt", "tokens")
    return {batch: tokens if len(tokens) >= attempt else _Any() for batch, attempt, tokens in known}

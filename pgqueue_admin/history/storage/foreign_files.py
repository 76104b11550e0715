"""Folders and files that this ledger never began: of another console, or of what a backup forgot."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from uuid import UUID, uuid4

from pgqueue_admin.history.storage.layout import DEPTHS, EVENTS, token_of
from pgqueue_admin.models import DataFile, FileToken, HistoryBatch, HistoryCompaction

_ATTEMPT = re.compile(r"batch-(\d+)-")


def noted() -> UUID:
    """For a file of depth or of events that is written next."""
    return FileToken.objects.create(token=uuid4()).token


def among(folder: Path, places: Sequence[Path]) -> list[Path]:
    """Asked after they were found: whoever writes has a token in the ledger before there is a folder."""
    return sorted([*_folders(places), *_files(folder, places)])


def _folders(places: Sequence[Path]) -> Iterator[Path]:
    """Of attempts and compactions."""
    tokens = {place: token for place in places if (token := token_of(place))}
    attempts = {place: int(found[1]) for place in tokens if (found := _ATTEMPT.match(place.name))}
    compacted = {token: place for place, token in tokens.items() if place.name.startswith("table-")}
    began = HistoryCompaction.objects.filter(token__in=list(compacted)).values_list("token", flat=True)
    yield from (compacted[token] for token in compacted.keys() - set(began))
    tried = _noted(set(attempts.values()))
    yield from (place for place, number in attempts.items() if tokens[place] not in tried.get(number, ()))


class _Any:
    """Of a batch that a driver of an older version tried: not all of its attempts are noted."""

    def __contains__(self, token: object) -> bool:
        return True


def _noted(batches: set[int]) -> dict[int, Container[UUID]]:
    """The attempts of these batches."""
    known = HistoryBatch.objects.filter(pk__in=batches).values_list("pk", "attempt", "tokens")
    return {batch: tokens if len(tokens) >= attempt else _Any() for batch, attempt, tokens in known}


def _files(folder: Path, places: Iterable[Path]) -> Iterator[Path]:
    """Of depth and events; a driver of an older version noted none, and what the manifest names is ours as well."""
    kept = [place for place in places if place.parent.name in (*DEPTHS, EVENTS)]
    found = {
        path: token_of(place) or token_of(path.with_suffix("")) for place in kept for path in place.rglob("*.parquet")
    }
    began = set(FileToken.objects.filter(token__in=filter(None, found.values())).values_list("token", flat=True))
    left = {str(path.relative_to(folder)): path for path, token in found.items() if token not in began}
    named = set(DataFile.objects.filter(path__in=list(left)).values_list("path", flat=True))
    yield from (left[path] for path in left.keys() - named)

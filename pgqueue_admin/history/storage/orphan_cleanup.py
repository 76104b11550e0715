"""Deletes orphan files: those of attempts and compactions that no manifest names."""

import logging
import re
import shutil
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from uuid import UUID, uuid4

from pgqueue_admin.history.storage import compactions
from pgqueue_admin.history.storage.layout import ALL, DEPTHS, EVENTS, token_of
from pgqueue_admin.models import DataFile, FileToken, HistoryBatch, HistoryCompaction

# Detects folders and files that this ledger never began: another console's, or lost from it by a restore.
_ATTEMPT = re.compile(r"batch-(\d+)-")


def noted() -> UUID:
    """A recorded token for the next depth or events file."""
    return FileToken.objects.create(token=uuid4()).token


def among(folder: Path, places: Sequence[Path]) -> list[Path]:
    """Unknown places. Call after listing them: a writer records its token before it creates a folder."""
    return sorted([*_folders(places), *_files(folder, places)])


def _folders(places: Sequence[Path]) -> Iterator[Path]:
    """Unknown attempts and compactions."""
    tokens = {place: token for place in places if (token := token_of(place))}
    attempts = {place: int(found[1]) for place in tokens if (found := _ATTEMPT.match(place.name))}
    compacted = {token: place for place, token in tokens.items() if place.name.startswith("table-")}
    began = HistoryCompaction.objects.filter(token__in=list(compacted)).values_list("token", flat=True)
    yield from (compacted[token] for token in compacted.keys() - set(began))
    tried = _noted(set(attempts.values()))
    yield from (place for place, number in attempts.items() if tokens[place] not in tried.get(number, ()))


class _Any:
    """Accepts every token: older drivers did not record all attempts of this batch."""

    def __contains__(self, token: object) -> bool:
        return True


def _noted(batches: set[int]) -> dict[int, Container[UUID]]:
    """Tokens of these batches' attempts."""
    known = HistoryBatch.objects.filter(pk__in=batches).values_list("pk", "attempt", "attempt_tokens")
    return {batch: tokens if len(tokens) >= attempt else _Any() for batch, attempt, tokens in known}


def _files(folder: Path, places: Iterable[Path]) -> Iterator[Path]:
    """Unknown depth and events files. Older drivers recorded no tokens, so files in the manifest are ours as well."""
    kept = [place for place in places if place.parent.name in (*DEPTHS, EVENTS)]
    found = {
        path: token_of(place) or token_of(path.with_suffix("")) for place in kept for path in place.rglob("*.parquet")
    }
    began = set(FileToken.objects.filter(token__in=filter(None, found.values())).values_list("token", flat=True))
    left = {str(path.relative_to(folder)): path for path, token in found.items() if token not in began}
    named = set(DataFile.objects.filter(path__in=list(left)).values_list("path", flat=True))
    yield from (left[path] for path in left.keys() - named)


log = logging.getLogger(__name__)
OLD = compactions.LONGEST  # seconds: longer than any attempt; readers have opened their files by then


def sweep(folder: Path, now: float | None = None) -> int:
    """Delete folders of attempts that never committed, and files no longer in the manifest; return how many of both.

    Deletes nothing if another ledger wrote here: its manifest may name what this one does not.
    """
    now = time.time() if now is None else now
    compactions.give_up_old()
    places = [place for dataset in ALL for place in (folder / dataset).glob("*-*")]
    if found := among(folder, places):
        log.warning(
            "History: no file is swept from %s, because this ledger knows nothing of %s in it (%s in all): the"
            " console's database was restored or is another one, or another console writes there"
            " (docs/how-to/resume-history.md).",
            folder, found[0].relative_to(folder), len(found),
        )  # fmt: skip
        return 0
    return sum(_sweep(folder, place, now - OLD) for place in places)


def _sweep(folder: Path, place: Path, before: float) -> int:
    is_at_work, below = _is_at_work(place), f"{place.relative_to(folder)}/"  # in this order: it may commit meanwhile
    named = set(DataFile.objects.filter(path__startswith=below).values_list("path", flat=True))
    if named:
        files = place.rglob("*.parquet")
        return _sweep_files([path for path in files if str(path.relative_to(folder)) not in named], before)
    if max(path.stat().st_mtime for path in [place, *place.rglob("*.parquet")]) >= before or is_at_work:
        return 0
    shutil.rmtree(place, ignore_errors=True)
    return 1


def _sweep_files(orphans: list[Path], before: float) -> int:
    old = [path for path in orphans if path.stat().st_mtime < before]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _is_at_work(place: Path) -> bool:
    """Whether its attempt may still commit, however long it has slept."""
    token = token_of(place)
    if token is None:
        return False
    return HistoryBatch.objects.filter(token=token, state="running").exists() or compactions.is_running(token)

"""Checks again, while a stream is open, that its person is signed in, and what they may see."""

import asyncio
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.db import Error, connections
from django.http import HttpRequest

FRESH_SECONDS = 2.5  # tabs of one browser share a check
_THREADS = ThreadPoolExecutor(2, "persons")  # threads of their own: a stream ends in time however much is rendered


class SignedOut(Exception):
    """Signed out elsewhere, deactivated, password changed, or sign-in too old: they see nothing more."""


def mark(person: Any) -> str:
    """Identifies what a person may do. A page carries the mark that it was rendered with.

    After the dot: the scopes of their groups, if there are any (console.account.backend loads them).
    """
    if person.is_superuser:
        return "all"
    rights = _hash(" ".join(sorted(person.get_all_permissions())))
    scopes = getattr(person, "scopes_of_groups", None)
    return f"{rights}.{_hash(str(scopes))}" if scopes else rights


def scopes_in(mark: str) -> str:
    return mark.partition(".")[2]


def _hash(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


class SessionCheck:
    """One check for all streams of a session, however many pages are open."""

    def __init__(self) -> None:
        self._looks: dict[str, tuple[float, asyncio.Future[str]]] = {}

    async def mark_of(self, session: SessionBase) -> str:
        """Their present mark; empty while the database does not answer. Raises SignedOut."""
        now, key = time.monotonic(), session.session_key or ""
        self._looks = {each: look for each, look in self._looks.items() if now - look[0] < FRESH_SECONDS}
        if key not in self._looks:
            look = asyncio.get_running_loop().run_in_executor(_THREADS, _look, type(session)(key))
            self._looks[key] = now, look
        return await asyncio.shield(self._looks[key][1])  # a closed page cancels no check of others


def _look(session: SessionBase) -> str:
    request = HttpRequest()
    request.session = session
    try:
        person = get_user(request)
        if not person.is_authenticated:
            raise SignedOut
        return mark(person)
    except Error:
        return ""
    finally:
        connections.close_all()  # of this thread; outside a request nothing else closes them

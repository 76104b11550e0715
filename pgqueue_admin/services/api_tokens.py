"""API tokens of programs: create, find and revoke them. Each act is audited."""

import secrets
from collections.abc import Collection
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from pgqueue_admin.models import ApiToken, AuditEntry, database_clock
from pgqueue_admin.models.api_token import RIGHTS
from pgqueue_admin.services.permissions import name_of

PREFIX = "pgqueue_"  # lets scanners of leaked secrets recognize a token
_USED_AT_MOST = timedelta(minutes=1)  # between two writes of used_at: a program may send a request each second


class TokenRefused(Exception):
    """The token cannot be created or revoked as requested; nothing was changed."""


def create(name: str, rights: Collection[str], person: Any, origin: str, kept_for: timedelta | None = None) -> str:
    """Create a token and return it: it is shown only this once. Raises TokenRefused."""
    name = name.strip()
    if not name or len(name) > 60 or not name.isprintable():
        raise TokenRefused("A token needs a name of at most 60 printable characters.")
    if not rights or set(rights) - set(RIGHTS):
        raise TokenRefused(f"A token may {' or '.join(RIGHTS)}: name one or both.")
    token = PREFIX + secrets.token_urlsafe(32)
    expires = database_clock.now() + kept_for if kept_for else None
    allowed = sorted(set(rights))
    try:
        with transaction.atomic():
            ApiToken.objects.create(
                name=name, digest=_digest(token), rights=allowed, created_by=name_of(person), expires_at=expires
            )
            after = {"rights": allowed, "expires_at": expires.isoformat() if expires else None}
            _audit("create", name, person, origin, after)
    except IntegrityError as error:
        raise TokenRefused(f"No token was made. There is one of the name {name}, or there was.") from error
    return token


def revoke(name: str, person: Any, origin: str) -> None:
    """Revoke a token: from now on it is refused. Raises TokenRefused."""
    with transaction.atomic():
        good = ApiToken.objects.filter(name__iexact=name, revoked_at=None)
        if not good.update(revoked_at=database_clock.now(), revoked_by=name_of(person)):
            raise TokenRefused(f"Nothing was revoked. No token {name} is in use.")
        _audit("revoke", name, person, origin)


def holder(token: str, right: str) -> ApiToken | None:
    """Return the token's row if the token is valid and has this right."""
    found = ApiToken.objects.filter(digest=_digest(token)).first()
    now = database_clock.now()
    if found is None or not found.is_good(now) or right not in found.rights:
        return None
    long_ago = Q(used_at=None) | Q(used_at__lt=now - _USED_AT_MOST)
    ApiToken.objects.filter(long_ago, pk=found.pk).update(used_at=now)
    return found


def _digest(token: str) -> str:
    """Hash 256 random bits: they cannot be guessed, so a slow hash would only slow the answer."""
    return sha256(token.encode(errors="replace")).hexdigest()


def _audit(verb: str, name: str, person: Any, origin: str, after: dict[str, Any] | None = None) -> None:
    AuditEntry.objects.create(who=name_of(person), verb=verb, noun="token", subject=name, after=after, origin=origin)

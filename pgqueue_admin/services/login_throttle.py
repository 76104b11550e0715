"""Throttles password guessing, and logs sign-ins.

Failures are counted by name and place, so that strangers at other addresses lock nobody out. A browser with an earlier
sign-in is a place of its own: behind a proxy that passes no addresses, all others share one. Over all places a name has
far more tries; after them it is slow in all browsers without one, so guessing from a thousand addresses gains nothing.
Failures are kept for a month, apart from the audit: strangers can add any number.
"""

import hashlib
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address

from django.contrib.sessions.models import Session

from pgqueue_admin.models import AuditEntry, FailedSignIn, database_clock

log = logging.getLogger("pgqueue.sign_in")
FREE = 5  # wrong passwords for one name before it has to wait
FREE_NAMES = 20  # names that may fail from one place
WINDOW = timedelta(minutes=15)
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(minutes=5)
FREE_ANYWHERE, LONG_WINDOW = 50, timedelta(hours=1)  # wrong passwords for one name, from all places
KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    name: str
    address: str  # empty if unknown
    browser: str = ""  # the browser's mark of an earlier sign-in of this name

    @property
    def place(self) -> str:
        if self.browser:
            return f"browser {hashlib.sha256(self.browser.encode()).hexdigest()[:32]}"
        return network(self.address)

    def begin(self) -> tuple[FailedSignIn, datetime | None]:
        """Count the attempt before its password is checked, or many at once would all pass. Return also its waiting
        time.
        """
        mine = FailedSignIn.objects.create(name=self.name[:150], place=self.place, address=self.address[:60])
        until = self._until(mine)
        if until:
            mine.delete()  # else repeated attempts would extend the wait for ever
        return mine, until

    def _until(self, mine: FailedSignIn) -> datetime | None:
        others = FailedSignIn.objects.filter(counts=True).exclude(pk=mine.pk)
        here = others.filter(place=self.place, at__gt=mine.at - WINDOW)
        times = list(here.filter(name=mine.name).order_by("-at").values_list("at", flat=True)[: FREE + 3])
        waits = [_waits(times)] if len(times) >= FREE else []
        if self.place and here.exclude(name=mine.name).values("name").distinct().count() >= FREE_NAMES:
            waits.append(here.latest("at").at + SHORTEST)
        anywhere = others.filter(name=mine.name, at__gt=mine.at - LONG_WINDOW).order_by("-at")
        if not self.browser and len(newest := anywhere.values_list("at", flat=True)[:FREE_ANYWHERE]) == FREE_ANYWHERE:
            waits.append(newest[0] + SHORTEST)
        return max((until for until in waits if until > mine.at), default=None)

    def failed(self) -> None:
        log.warning("A sign-in as %r from %s failed.", self.name[:150], self.address or "an unknown address")

    def succeeded(self) -> None:
        FailedSignIn.objects.filter(name=self.name[:150], place=self.place).update(counts=False)
        log.info("%r signed in from %s.", self.name[:150], self.address or "an unknown address")
        _audit("sign in", self.name, who=self.name, after={"address": self.address})


def forget() -> int:
    """Delete failed sign-ins past their retention, and expired sessions; return how many."""
    gone, _ = FailedSignIn.objects.filter(at__lt=database_clock.now() - KEPT).delete()
    ended, _ = Session.objects.filter(expire_date__lt=database_clock.now()).delete()
    return gone + ended


def _waits(times: list[datetime]) -> datetime:
    """After five failures wait a minute, then two, four and at most five: short enough for others at the same place."""
    return times[0] + min(SHORTEST * 2 ** (len(times) - FREE), LONGEST)


def network(address: str) -> str:
    """Return the address; of IPv6 the half that a provider assigns, as its owner chooses the other half freely."""
    try:
        known = ip_address(address)
    except ValueError:
        return ""
    if not isinstance(known, IPv6Address):
        return str(known)
    return str(known.ipv4_mapped or IPv6Address(int(known) >> 64 << 64))


def changed_password(name: str) -> None:
    log.info("%r changed their password.", name)
    _audit("change password", name, who=name)


def _audit(verb: str, name: str, who: str, after: dict[str, str] | None = None) -> None:
    about = {"noun": "person", "subject": name[:150], "origin": "console"}
    AuditEntry.objects.create(who=who[:150], verb=verb, after=after, **about)

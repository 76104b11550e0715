"""The brake on guessing passwords, and the trace that sign-ins leave.

Counted by name and place, so that nobody is locked out by strangers at other addresses. A browser in which somebody has
signed in before is a place of its own: behind a proxy that names no addresses all others share one. Over all places a
name has far more tries, and is then slow for whoever comes in another browser: guessing from a thousand addresses pays
for none. What failed is kept apart from the audit, for a month: a stranger writes there as often as they like.
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
FREE_NAMES = 20  # names that one place may have wrong
WINDOW = timedelta(minutes=15)
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(minutes=5)
FREE_ANYWHERE, LONG_WINDOW = 50, timedelta(hours=1)  # wrong passwords for one name, wherever they come from
KEPT = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    name: str
    address: str  # empty where it is not known
    browser: str = ""  # what a browser has kept of an earlier sign-in of this name

    @property
    def place(self) -> str:
        if self.browser:
            return f"browser {hashlib.sha256(self.browser.encode()).hexdigest()[:32]}"
        return network(self.address)

    def begin(self) -> tuple[FailedSignIn, datetime | None]:
        """Counted before the password is looked at, or many at once would all pass; and until when it has to wait."""
        mine = FailedSignIn.objects.create(name=self.name[:150], place=self.place, address=self.address[:60])
        until = self._until(mine)
        if until:
            mine.delete()  # or whoever keeps pressing would wait for ever
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
    """Failed sign-ins that are old enough, and sign-ins that have ended; how many."""
    gone, _ = FailedSignIn.objects.filter(at__lt=database_clock.now() - KEPT).delete()
    ended, _ = Session.objects.filter(expire_date__lt=database_clock.now()).delete()
    return gone + ended


def _waits(times: list[datetime]) -> datetime:
    """After five a minute, then two, four and at most five: short enough for whoever shares the place."""
    return times[0] + min(SHORTEST * 2 ** (len(times) - FREE), LONGEST)


def network(address: str) -> str:
    """Of IPv6 the half that a provider gives away: the other one its owner chooses at will."""
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

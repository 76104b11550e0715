"""Template context for the frame of every page: environment, rail, clock, theme, age of the figures."""

from functools import cached_property
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from pgqueue_admin.console import navigation, permissions
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.live import session_check
from pgqueue_admin.models import database_clock, staleness
from pgqueue_admin.models import database_role as role

THEMES = ("system", "light", "dark")


class PageFrame:
    """Evaluated only by base.html, so a page without the frame costs nothing."""

    def __init__(self, request: HttpRequest):
        self._request = request

    @property
    def environment(self) -> str:
        return settings.PGQUEUE["ENVIRONMENT"] or "unnamed"

    @property
    def colour(self) -> str:
        return str(settings.PGQUEUE["ENVIRONMENT_COLOUR"])

    @property
    def theme(self) -> str:
        wanted = self._request.COOKIES.get("theme", "")
        return wanted if wanted in THEMES else "system"

    themes = THEMES

    @property
    def utc(self) -> bool:
        return self._request.COOKIES.get("utc") == "on"

    @property
    def zone(self) -> str:
        return str(timezone.get_current_timezone())  # Django's name of Etc/GMT+5 is "-05", which is no zone name

    @property
    def single_keys(self) -> bool:
        return self._request.COOKIES.get("keys") != "off"

    @property
    def search_url(self) -> str:
        return self._open("finder")

    @property
    def admin_url(self) -> str:
        return self._open("admin:index")

    def _open(self, name: str) -> str:
        return navigation.path_of(name) if addresses.is_open(name) else ""

    @property
    def role(self) -> role.DatabaseRole | None:
        return role.current()

    @property
    def seen(self) -> VisibleQueues | None:
        """The queues that this person's scopes allow; None: all queues."""
        return visible_queues.current()

    @cached_property
    def rights(self) -> list[str]:
        """What this person may do, in words."""
        return permissions.allowed(self._request.user)

    @property
    def rights_mark(self) -> str:
        """A hash of this person's rights, with which the page's stream detects a change."""
        return session_check.mark(self._request.user)

    @cached_property
    def _counts(self) -> navigation.NavigationBadges:
        return navigation.NavigationBadges()

    @cached_property
    def rail(self) -> list[navigation.NavigationGroup]:
        return navigation.groups(self._request, self._counts)

    @property
    def quick(self) -> list[navigation.NavigationEntry]:
        return navigation.quick(self.rail)

    @property
    def now(self) -> Any:
        return timezone.localtime(database_clock.now())

    @cached_property
    def sampled_at(self) -> Any:
        newest = self._counts.newest
        return timezone.localtime(newest) if newest else None

    @property
    def why_stale(self) -> str:
        return self._counts.why_stale

    @cached_property
    def age(self) -> float | None:
        return staleness.age(self.sampled_at) if self.sampled_at else None

    @property
    def stale(self) -> bool:
        return staleness.is_stale(self.sampled_at)

    @property
    def stale_after(self) -> float:
        return staleness.limit()


def page_frame(request: HttpRequest) -> dict[str, Any]:
    """Context processor."""
    return {"frame": PageFrame(request)}

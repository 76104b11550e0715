"""Messages for the next page, in a cookie whose name no other console on this host uses."""

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage


class FlashCookie(CookieStorage):
    cookie_name = f"messages_{settings.INSTALLATION}"


class FlashStorage(FallbackStorage):
    """A message too long for a cookie is stored in the session."""

    storage_classes = (FlashCookie, SessionStorage)

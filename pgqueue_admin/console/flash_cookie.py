"""What the next page says of an act: kept in a cookie that no other console on this host takes."""

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage


class FlashCookie(CookieStorage):
    cookie_name = f"messages_{settings.INSTALLATION}"


class FlashStorage(FallbackStorage):
    """What is too long for a cookie goes into the session."""

    storage_classes = (FlashCookie, SessionStorage)

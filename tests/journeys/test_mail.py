"""The mail of a warning in a browser: on a phone no name, however long, makes it wider than the screen."""

from typing import Any

import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Browser

from pgqueue_admin.alerts.mail.metrics import MailLink, MailMetric

pytestmark = pytest.mark.journey
LONG = "Ravenhill.Shop.Billing." + "VeryLong" * 12
MAIL: dict[str, Any] = {
    "environment": "production-" * 4, "colour": "#6e2a5d", "severity": "critical", "kind": "dead messages",
    "where": "V" * 63, "fact": f"2 dead messages by {LONG}, target 0", "since": "25 Nov 03:12:44 UTC",
    "lasted": "13 min 8 s", "types": [LONG], "meaning": f"It said: {LONG}", "next_at": 4, "warning_url": "/alerts/1/",
    "figures": [
        MailMetric("died since it began", "12,345,678", "1,234,567 told before"),
        MailMetric("oldest ready", "none waits"),
    ],
    "links": [
        MailLink("The warning", "/alerts/1/"), MailLink("The messages", "/archive/"), MailLink("The queue", "/queues/"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [600, 360])
def test_mail_is_no_wider_than_its_window(width: int, scheme: Any, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)
    page.set_content(render_to_string("pgqueue_admin/mail/alert.html", MAIL))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    number = page.get_by_text("12,345,678").bounding_box()
    assert number
    assert number["height"] < 30, "a figure stays on one line"
    page.close()

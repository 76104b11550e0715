"""One mail as a row: subject, text and HTML, composed before it is sent and never changed after."""

import textwrap
import uuid
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from django.utils import timezone

from pgqueue_admin.alerts import display_names, resolution_summary
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.mail import links, metrics, subject
from pgqueue_admin.alerts.mail.mail_settings import MailSettings
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting.colours import COLOURS
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import NBSP, format_int
from pgqueue_admin.formatting.times import local, zone_name
from pgqueue_admin.models import Alert, AlertMail

COLUMNS = 72
About = AlertMail.About


def write(look: AlertSnapshot, alert: Alert, about: About, last: str = "") -> AlertMail:
    """The row that waits to be sent. What it says is what was known when the warning changed."""
    context = facts(look, alert, about) | {"last": last}
    first = alert.mails.order_by("id").first()
    return AlertMail.objects.create(
        alert=alert,
        about=about,
        message_id=message_id(look.mail, f"alert-{alert.pk}"),
        in_reply_to=first.message_id if first else "",
        to=", ".join(look.mail.recipients),
        subject=subject_of(look, alert, about),
        text=render("alert.txt", context),
        html=render("alert.html", context),
    )


def write_test(mail: MailSettings, person: str, colour: str) -> AlertMail:
    context = {"environment": mail.environment or "unnamed", "person": person, "colour": COLOURS[colour]}
    context["settings_url"] = links.absolute("alert_mails")
    return AlertMail.objects.create(
        about=About.TEST,
        message_id=message_id(mail, "test"),
        to=", ".join(mail.recipients),
        subject=subject.compose(mail.environment, "test", "mail arrives", "", "", "", f", asked for by {person}"),
        text=render("test.txt", context),
        html=render("test.html", context),
    )


def message_id(mail: MailSettings, what: str) -> str:
    """Made once, kept in the row: a mail that has to be sent again is known by it as the same."""
    return f"<{what}.{uuid.uuid4()}@{mail.domain}>"


def subject_of(look: AlertSnapshot, alert: Alert, about: About) -> str:
    kind, where, cause = BY_NAME[alert.kind], display_names.where(alert), display_names.cause(alert)
    if about == About.RESOLVED:
        lasted = duration(int((look.now - alert.opened_at).total_seconds()))
        return subject.compose(look.environment, "resolved", "", where, kind.title, cause, f", after {lasted}")
    opened = local(alert.opened_at, timezone.get_default_timezone())
    fact = alert.value if cause else f"{kind.title} {alert.value}"
    before = ""
    if about == About.GREW:
        before, fact = "now", f"{format_int(alert.count)} died" if cause else fact  # what has doubled
    against = f", {kind.threshold} {alert.threshold}" if kind.threshold else ""
    after = f"{against}, since {opened:%H:%M}"
    return subject.compose(look.environment, alert.severity, before, where, fact, cause, after)


def facts(look: AlertSnapshot, alert: Alert, about: About) -> dict[str, Any]:
    """What both parts show. Never a body, never a header's value (CONSOLE 11)."""
    opened, over = local(alert.opened_at, timezone.get_default_timezone()), about == About.RESOLVED
    return {
        "environment": look.environment or "unnamed",
        "colour": COLOURS[look.colour],
        "severity": "resolved" if over else alert.severity,
        "resolved": over,
        "became": subject.unlinked(resolution_summary.of(alert)) if over else "",
        "where": subject.unlinked(display_names.where(alert)),
        "queue": subject.unlinked(alert.queue),
        "kind": BY_NAME[alert.kind].title,
        "fact": subject.unlinked(_without_figures(alert) if over else alert.sentence),
        "meaning": subject.unlinked(alert.meaning),
        "since": both_zones(opened),
        "lasted": duration(max(0, int((look.now - alert.opened_at).total_seconds()))),
        "figures": metrics.of(look, alert),
        "types": [subject.unlinked(name) for name in metrics.types(look, alert)],
        "known": [subject.unlinked(said) for said in metrics.known(alert)] if alert.kind == "dead_message" else [],
        "links": metrics.links_of(alert),
        "warning_url": links.warning(alert.pk),
        "ends_silently": BY_NAME[alert.kind].ends_silently,
        "next_at": format_int(2 * alert.count) if BY_NAME[alert.kind].counts else "",
    }


def _without_figures(alert: Alert) -> str:
    """Of one that is over: its last look was somewhere halfway."""
    title, cause = BY_NAME[alert.kind].title, display_names.cause(alert)
    return f"{title} by {cause}" if cause else title


def both_zones(opened: datetime) -> str:
    """``20 Nov 02:47:03 CET (01:47:03 UTC)``, once where they are the same."""
    utc = opened.astimezone(timezone.get_fixed_timezone(0))
    said = f"{opened.day} {opened:%b %H:%M:%S} {zone_name(opened)}"
    return said if opened.utcoffset() == utc.utcoffset() else f"{said} ({utc:%H:%M:%S} UTC)"


def render(template: str, context: dict[str, Any]) -> str:
    """Text is filled to 72 columns paragraph by paragraph; lines that are indented keep their shape."""
    said = render_to_string(f"pgqueue_admin/mail/{template}", context)
    return said if template.endswith(".html") else wrapped(said.replace(NBSP, " "))


def wrapped(text: str) -> str:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(line if line.startswith(" ") else _filled(line) for line in lines) + "\n"


def _filled(line: str) -> str:
    return textwrap.fill(line, COLUMNS, break_long_words=False, break_on_hyphens=False)

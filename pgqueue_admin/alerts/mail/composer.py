"""Composes a mail as a row: subject, text and HTML, written before sending and never changed."""

import re
import textwrap
import unicodedata
import uuid
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from django.utils import timezone

from pgqueue_admin.alerts import display_names, failures_of
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.mail import links, metrics
from pgqueue_admin.alerts.mail.mail_settings import MailSettings
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.colours import COLOURS
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import NBSP, format_int
from pgqueue_admin.formatting.times import local, zone_name
from pgqueue_admin.models import Alert, AlertMail
from pgqueue_admin.models.queue_database import queue_database

COLUMNS = 72
About = AlertMail.About


def write(look: AlertSnapshot, alert: Alert, about: About, last: str = "") -> AlertMail:
    """Create the waiting row. It says what was known when the warning changed."""
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
        subject=compose_subject(mail.environment, "test", "mail arrives", "", "", "", f", asked for by {person}"),
        text=render("test.txt", context),
        html=render("test.html", context),
    )


def message_id(mail: MailSettings, what: str) -> str:
    """Make a Message-ID, stored in the row: a mail sent again is recognized as the same."""
    return f"<{what}.{uuid.uuid4()}@{mail.domain}>"


def subject_of(look: AlertSnapshot, alert: Alert, about: About) -> str:
    kind, where, cause = BY_NAME[alert.kind], display_names.where(alert), display_names.cause(alert)
    if about == About.RESOLVED:
        lasted = duration(int((look.now - alert.opened_at).total_seconds()))
        return compose_subject(look.environment, "resolved", "", where, kind.title, cause, f", after {lasted}")
    opened = local(alert.opened_at, timezone.get_default_timezone())
    fact = alert.value if cause else f"{kind.title} {alert.value}"
    before = ""
    if about == About.GREW:
        before, fact = "now", f"{format_int(alert.count)} died" if cause else fact  # what has doubled
    against = f", {kind.threshold} {alert.threshold}" if kind.threshold else ""
    after = f"{against}, since {opened:%H:%M}"
    return compose_subject(look.environment, alert.severity, before, where, fact, cause, after)


def facts(look: AlertSnapshot, alert: Alert, about: About) -> dict[str, Any]:
    """Return what both parts show. Never a body, never a header's value (CONSOLE 11)."""
    opened, over = local(alert.opened_at, timezone.get_default_timezone()), about == About.RESOLVED
    failures = failures_of.find([alert])[alert.pk] if alert.kind == "dead_message" else metrics.NO_FAILURES
    return {
        "environment": look.environment or "unnamed",
        "colour": COLOURS[look.colour],
        "severity": "resolved" if over else alert.severity,
        "resolved": over,
        "became": unlinked(resolution_of(alert)) if over else "",
        "where": unlinked(display_names.where(alert)),
        "queue": unlinked(alert.queue),
        "kind": BY_NAME[alert.kind].title,
        "fact": unlinked(_without_figures(alert) if over else alert.sentence),
        "meaning": unlinked(alert.meaning),
        "since": both_zones(opened),
        "lasted": duration(max(0, int((look.now - alert.opened_at).total_seconds()))),
        "figures": metrics.of(look, alert),
        "types": [unlinked(name) for name in metrics.types(look, alert)],
        "known": [unlinked(said) for said in metrics.known(failures)],
        "links": metrics.links_of(alert, failures),
        "warning_url": links.warning(alert.pk),
        "ends_silently": BY_NAME[alert.kind].ends_silently,
        "next_at": format_int(2 * alert.count) if BY_NAME[alert.kind].counts else "",
    }


def _without_figures(alert: Alert) -> str:
    """Describe a resolved warning without figures: the last pass saw some value on the way down."""
    title, cause = BY_NAME[alert.kind].title, display_names.cause(alert)
    return f"{title} by {cause}" if cause else title


def both_zones(opened: datetime) -> str:
    """Format as ``20 Nov 02:47:03 CET (01:47:03 UTC)``, once if they are equal."""
    utc = opened.astimezone(timezone.get_fixed_timezone(0))
    said = f"{opened.day} {opened:%b %H:%M:%S} {zone_name(opened)}"
    return said if opened.utcoffset() == utc.utcoffset() else f"{said} ({utc:%H:%M:%S} UTC)"


def render(template: str, context: dict[str, Any]) -> str:
    """Render; text is filled to 72 columns by paragraph, and indented lines stay unchanged."""
    said = render_to_string(f"pgqueue_admin/mail/{template}", context)
    return said if template.endswith(".html") else wrapped(said.replace(NBSP, " "))


def wrapped(text: str) -> str:
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(line if line.startswith(" ") else _filled(line) for line in lines) + "\n"


def _filled(line: str) -> str:
    return textwrap.fill(line, COLUMNS, break_long_words=False, break_on_hyphens=False)


# A mail's subject: environment, severity, queue, fact, cause and target in 78 characters, for any names.
LONGEST = 78
_SHORTEST = 8
# marks of an address: the colon of https://, the dot of www., the @ between two names
_ADDRESS = re.compile(r"(?<=\w):(?=//)|(?<=\bmailto):|(?<=\bwww)\.|(?<=\w)@(?=\w)", re.IGNORECASE)


def one_line(text: str) -> str:
    """Replace controls, line ends, separators and bidi marks by spaces: no name adds a header or reverses a line."""
    kept = "".join(" " if unicodedata.category(mark)[0] == "C" or mark in "\u2028\u2029" else mark for mark in text)
    return " ".join(kept.split())


def unlinked(text: str) -> str:
    """Put on one line, and break addresses that a mail reader would link: a message type's author could otherwise send
    links to all on call, in our name. Our own links have lines of their own.
    """
    return _ADDRESS.sub(lambda found: f"[{found[0]}]", one_line(text))


def clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(1, length - 1)].rstrip() + "…"


def compose_subject(
    environment: str, state: str, before: str, queue: str, middle: str, cause: str, after: str = ""
) -> str:
    """``[production] critical: Billing 24 dead (GatewayTimeout), target 0, since 02:47``.

    An overlong subject is cut first in the cause, then in the queue, then in the environment.
    """
    names = [one_line(name) for name in (cause, queue, environment or "unnamed")]
    rest = [one_line(part) for part in (state, before, middle, after)]
    line = _line(names, rest)
    for place in range(len(names)):
        excess = len(line) - LONGEST
        if excess > 0:
            names[place] = clip(names[place], max(_SHORTEST, len(names[place]) - excess))
            line = _line(names, rest)
    if len(line) > LONGEST:
        line = _line(["", *names[1:]], rest)
    return clip(line, LONGEST)


def _line(names: list[str], rest: list[str]) -> str:
    cause, queue, environment = names
    state, before, middle, after = rest
    parts = (f"[{environment}] {state}:", before, queue, middle, cause and f"({cause})", after)
    text = " ".join(part for part in parts if part)
    return text.replace(" ,", ",")


# The outcome of a resolved warning's messages: who decided on how many.
MOST_ACTS = 3  # acts that are named: a mail is no list of operations
RESOLUTION_WORDS = {"succeeded": "retried and succeeded", "dead_again": "retried and dead again"}


def resolution_of(alert: Alert) -> str:
    """Return a sentence without its full stop; "" if unknown: several causes, or the archive cannot be read."""
    if alert.kind != "dead_message" or not alert.cause:
        return ""
    about = {"queue": alert.queue, "cause": alert.cause, "since": alert.opened_at, "most": MOST_ACTS + 1}
    try:
        with queue_database().read_session() as connection:
            acts = connection.all(queue_database().dialect.alerts.resolutions(), about)
    except DatabaseError:
        return ""
    said = [*map(_said, acts[:MOST_ACTS]), *(["more by others"] if len(acts) > MOST_ACTS else [])]
    return f"What became of them: {'; '.join(said)}" if said else ""


def _said(act: Any) -> str:
    by = f" by {one_line(act.who)}" if act.who else ""
    operation = f", operation {act.operation}" if act.operation else ""
    return f"{format_int(act.count)} {RESOLUTION_WORDS.get(act.resolution, act.resolution)}{by}{operation}"

"""What did the system notice, and who knows? The code says alert, the screen Warning."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from pgqueue_admin.alerts import acknowledgements as acknowledging
from pgqueue_admin.alerts.mail import mail_settings, sample_mail
from pgqueue_admin.console import pagination, permissions, responses
from pgqueue_admin.console.alerts import filter_box, groups
from pgqueue_admin.console.alerts import rows as alerts
from pgqueue_admin.console.alerts.acknowledgement_form import AcknowledgementForm
from pgqueue_admin.console.parsing import parse_int, parse_ints
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Alert, AlertMail
from pgqueue_admin.services import content_access

MASKED = "A masking rule hides what exceptions say, and a mail that was sent cannot be masked part by part."


def frame_of(request: HttpRequest) -> dict[str, Any]:
    """Context of all pages of this noun."""
    return {
        "counts": alerts.counts(),
        "silent": alerts.nobody_watches(),
        "box": mail_settings.configured(),
        "refusal": permissions.refusal_on_page(request.user, "acknowledge"),
        "refusal_test": permissions.refusal_on_page(request.user, "set"),
    }


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    state = request.GET.get("state", "open")
    state = state if state in alerts.STATES else "open"
    query = filter_box.read(request.GET.get("q", ""))
    is_grouped = state == "open" and request.GET.get("by") != "list"
    most = alerts.MOST if is_grouped else alerts.PAGE
    found = alerts.in_state(state, None if is_grouped else alerts.key_of(request.GET.get("after"))).filter(query.where)
    shown = alerts.rows(found[: most + 1])
    more = len(shown) > most
    about = {
        "state": state,
        "query": query,
        "is_grouped": is_grouped,
        "rows": shown[:most],
        "groups": groups.grouped(shown[:most]) if is_grouped else [],
        "more": more,
        "older": alerts.cursor_after(shown[most - 1].alert) if more and not is_grouped else "",
        "last_closed": alerts.last_closed() if not shown else None,
        "mails": AlertMail.objects.select_related("alert")[:8],
    }
    return render(request, "pgqueue_admin/alerts/page.html", frame_of(request) | about)


@require_http_methods(["GET", "HEAD", "POST"])
def acknowledge(request: HttpRequest) -> HttpResponse:
    """Several at once, named in the URL as ``n=3&n=8``: ask until when and why, then acknowledge them."""
    chosen = [number for each in request.GET.getlist("n")[: alerts.MOST] if (number := parse_int(each)) is not None]
    rows = alerts.rows(Alert.objects.filter(alerts.STATES["open"], pk__in=chosen).order_by("severity", "-opened_at"))
    form = AcknowledgementForm(request.POST if request.method == "POST" else None)
    refusal = permissions.refusal_on_page(request.user, "acknowledge")
    if request.method == "POST" and refusal:
        responses.refused(request, f"Nothing was changed. Acknowledging {refusal}.")
        return responses.back(request, "alerts")
    if request.method == "POST" and form.is_valid():
        return _acknowledge_all(request, [row.alert.pk for row in rows], form)
    about = {"rows": rows, "chosen": len(set(chosen)), "form": form, "state": "open"}
    return render(request, "pgqueue_admin/alerts/acknowledgements.html", frame_of(request) | about)


def _acknowledge_all(request: HttpRequest, numbers: list[int], form: AcknowledgementForm) -> HttpResponse:
    given = {"reason": form.cleaned_data["reason"], "lasts": form.cleaned_data["until"]}
    did = acknowledging.acknowledge_all(numbers, request.user, "console", **given)
    for sentence in did.refused:
        responses.refused(request, sentence)
    if did.done:
        said = f"{pluralize(did.done, 'warning')} acknowledged for {duration(given['lasts'].total_seconds())}."
        responses.done(request, said, Way("See them", f"{reverse('alerts')}?state=acknowledged"))
    elif not did.refused:
        responses.refused(request, "Nothing was acknowledged. None of these warnings is open any more.")
    return responses.SeeOther(reverse("alerts"))


@require_safe
def one(request: HttpRequest, number: int) -> HttpResponse:
    alert = existing(Alert, f"There is no warning {number}.", pk=number)
    about = {"row": alerts.rows([alert])[0], "mails": alert.mails.order_by("id")}
    return render(request, "pgqueue_admin/alerts/alert.html", frame_of(request) | about)


@require_POST
def acknowledgement(request: HttpRequest, number: int) -> HttpResponse:
    """Acknowledge a warning, or withdraw its acknowledgement."""
    refusal = permissions.refusal_on_page(request.user, "acknowledge")
    act = acknowledging.withdraw if "withdraw" in request.POST else acknowledging.acknowledge
    blocking_reason = (
        f"Nothing was changed. Acknowledging {refusal}." if refusal else act(number, request.user, "console")
    )
    if blocking_reason:
        responses.refused(request, blocking_reason)
    elif "withdraw" in request.POST:
        responses.done(request, "Put back among the open warnings.", *_ways(number, "Acknowledge again", {}))
    else:
        said = alerts.acknowledged(Alert.objects.get(pk=number))
        responses.done(request, said, *_ways(number, "Undo", {"withdraw": "yes"}))
    return responses.back(request, reverse("alert", args=[number]))


def _ways(number: int, back: str, fields: dict[str, str]) -> list[Way]:
    return [
        Way("See the warning", reverse("alert", args=[number])),
        Way(back, reverse("alert_acknowledgement", args=[number]), fields),
    ]


@require_POST
def acknowledgements(request: HttpRequest) -> HttpResponse:
    """Acknowledge several by their numbers, or withdraw that: the warnings of one queue, from Overview."""
    named = parse_ints(request.POST.get("alerts", ""), alerts.PAGE) or ""
    refusal, withdraws = permissions.refusal_on_page(request.user, "acknowledge"), "withdraw" in request.POST
    if refusal or not named:
        why = f"Acknowledging {refusal}" if refusal else "No warning was named"
        responses.refused(request, f"Nothing was changed. {why}.")
        return responses.back(request)
    act = acknowledging.withdraw if withdraws else acknowledging.acknowledge
    refusals = {int(number): act(int(number), request.user, "console") for number in named.split(",")}
    if done := [number for number, why in refusals.items() if not why]:
        said = "Put back among the open warnings." if withdraws else alerts.acknowledged_all(done)
        fields = {"alerts": ",".join(map(str, done)), **({} if withdraws else {"withdraw": "yes"})}
        word = "Acknowledge again" if withdraws else "Undo"
        responses.done(request, said, Way(word, reverse("alert_acknowledgements"), fields))
    for why in dict.fromkeys(filter(None, refusals.values())):
        responses.refused(request, why)
    return responses.back(request)


@require_http_methods(["GET", "HEAD", "POST"])
def mails(request: HttpRequest) -> HttpResponse:
    """The list of mails; a POST requests a test mail."""
    if request.method == "POST":
        return send_test(request)
    before = pagination.integer(request.GET.get("before"))
    found = AlertMail.objects.select_related("alert").filter(**({"pk__lt": before} if before else {}))
    shown = list(found[: alerts.PAGE + 1])
    older = pagination.pack(shown[alerts.PAGE - 1].pk) if len(shown) > alerts.PAGE else ""
    about = {"mails": shown[: alerts.PAGE], "older": older}
    return render(request, "pgqueue_admin/alerts/mails.html", frame_of(request) | about)


def send_test(request: HttpRequest) -> HttpResponse:
    refusal = permissions.refusal_on_page(request.user, "set")
    if refusal:
        responses.refused(request, f"No mail was sent. Sending a test mail {refusal}.")
    elif blocking_reason := sample_mail.ask(request.user, "console"):
        responses.refused(request, blocking_reason)
    else:
        to = ", ".join(mail_settings.configured().recipients)
        responses.done(request, f"A test mail to {to} waits for the alerter. Its state is below.")
    return responses.back(request, reverse("alert_mails"))


@require_safe
def mail(request: HttpRequest, number: int) -> HttpResponse:
    found = existing(AlertMail, f"There is no mail {number}.", pk=number)
    access = content_access.of(request.user)
    text = access.text(found.text)
    said = {"text": text, "withheld": access.refusal or ("" if text or not found.text else MASKED)}
    about = {"mail": found, **said, "thread": found.alert.mails.order_by("id") if found.alert else []}
    return render(request, "pgqueue_admin/alerts/mail.html", frame_of(request) | about)


urlpatterns = [
    path("alerts/", page, name="alerts"),
    path("alerts/acknowledge/", acknowledge, name="alert_acknowledge"),
    path("alerts/<int:number>/", one, name="alert"),
    path("alerts/<int:number>/acknowledgement/", acknowledgement, name="alert_acknowledgement"),
    path("alerts/acknowledgements/", acknowledgements, name="alert_acknowledgements"),
    path("alerts/mail/", mails, name="alert_mails"),
    path("alerts/mail/<int:number>/", mail, name="alert_mail"),
]

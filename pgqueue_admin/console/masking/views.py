"""The page of masking rules, each rule's page, and the actions that reveal what rules hide, or hide it again."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from pgqueue_admin.console import navigation, permissions, responses
from pgqueue_admin.console.masking.form import MaskingRuleForm, fields_of
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.models import AuditEntry, MaskingRule
from pgqueue_admin.services.masking import reveals, rule_changes
from pgqueue_admin.services.masking.reveals import RevealNotAllowed, RevealRefused
from pgqueue_admin.services.masking.rule_changes import RuleNotAllowed, RuleRefused

HISTORY = 20


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """List all rules; a POST adds one."""
    navigation.stands_under(request, "settings")
    form = MaskingRuleForm(request.POST if request.method == "POST" else None)
    fault, status = "", 200
    if request.method == "POST":
        status = 422
        if refusal := permissions.refusal_on_page(request.user, "reveal"):
            fault, status = f"Nothing was changed: it {refusal}.", 403
        elif form.is_valid():
            try:
                made = rule_changes.add(form.typed, request.user, "console", responses.reason(request))
            except RuleRefused as error:
                fault = str(error)
            else:
                undo = {"remove": "yes", "version": str(made.version)}
                way = Way("Undo", reverse("masking_rule", args=[made.pk]), undo)
                responses.done(request, f"{made.name} hides its parts from now on.", way)
                return responses.SeeOther(reverse("masking"))
    about = {"rules": MaskingRule.objects.all(), "entries": _entries()[:HISTORY], "most": rule_changes.MOST}
    return _answer(request, "page", about | {"form": form, "fault": fault}, status)


@require_http_methods(["GET", "HEAD", "POST"])
def one(request: HttpRequest, number: int) -> HttpResponse:
    """Show a rule; a POST changes it, or removes it with ``remove``."""
    navigation.stands_under(request, "settings")
    known = existing(MaskingRule, f"There is no masking rule {number}.", pk=number)
    form = MaskingRuleForm(request.POST if request.method == "POST" else None, known)
    version, fault, status = parse_int(request.POST.get("version", "")), "", 200
    if request.method == "POST" and ("remove" in request.POST or form.is_valid()):
        try:
            if "remove" in request.POST:
                rule_changes.remove(number, version, request.user, "console", responses.reason(request))
                said = f"{known.name} was removed: what it hid is shown."
                responses.done(request, said, Way("Undo", reverse("masking"), fields_of(known)))
            else:
                reason = responses.reason(request)
                rule_changes.change(number, version, form.typed, request.user, "console", reason)
                said = f"{form.typed.name} holds as it is now."
                responses.done(request, said, Way("See it", reverse("masking_rule", args=[number])))
            return responses.SeeOther(reverse("masking"))
        except RuleRefused as error:
            fault, status = str(error), 403 if isinstance(error, RuleNotAllowed) else 422
    elif request.method == "POST":
        status = 422
    shown = version if request.method == "POST" else known.version
    about = {"rule": known, "form": form, "fault": fault, "version": shown, "entries": _entries(known.name)[:HISTORY]}
    return _answer(request, "rule", about, status)


@require_POST
def reveal(request: HttpRequest) -> HttpResponse:
    """Reveal masked parts to this person for some minutes; with ``end``, hide them again at once."""
    back = responses.came_from(request) or reverse("masking")
    if "end" in request.POST:
        if reveals.end(request.user, back, "console"):
            responses.done(request, "Masked parts are hidden again.")
        else:
            responses.refused(request, "Nothing was changed. Masked parts were hidden already.")
        return responses.SeeOther(back)
    try:
        until = reveals.begin(request.user, responses.reason(request), back, "console")
    except RevealNotAllowed as error:
        return _answer(request, "refused", {"fault": str(error)}, 403)
    except RevealRefused as error:
        responses.refused(request, str(error))
    else:
        responses.done(request, f"Masked parts are shown to you until {timezone.localtime(until):%H:%M:%S}.")
    return responses.SeeOther(back)


def _entries(name: str = ""):  # type: ignore[no-untyped-def]
    found = AuditEntry.objects.filter(noun="masking")
    return found.filter(subject=name) if name else found


def _answer(request: HttpRequest, template: str, about: dict[str, object], status: int) -> HttpResponse:
    about["refusal"] = permissions.refusal_on_page(request.user, "reveal")
    return render(request, f"pgqueue_admin/masking/{template}.html", about, status=status)


urlpatterns = [
    path("settings/masking/", page, name="masking"),
    path("settings/masking/<int:number>/", one, name="masking_rule"),
    path("masking/reveal/", reveal, name="masking_reveal"),
]

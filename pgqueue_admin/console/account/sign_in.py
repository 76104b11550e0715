"""Sign-in, sign-out and the change of one's own password. Sign-in is the one page open to strangers."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.urls import path, reverse, reverse_lazy
from django.utils import timezone

from pgqueue_admin.console import context_processors, responses
from pgqueue_admin.console.account.preferences import YEAR
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.models import database_clock
from pgqueue_admin.services import login_throttle

KNOWN = "known"
COOKIE = f"{KNOWN}_{settings.INSTALLATION}"  # of a browser in which a person has signed in before


class SignInForm(AuthenticationForm):
    """One message for a wrong name and a wrong password; Django takes the same time for both."""

    error_messages = {
        "invalid_login": "Name or password is wrong.",
        "inactive": "Name or password is wrong.",
    }
    waits = False

    def clean(self) -> dict[str, Any]:
        if not (self.cleaned_data.get("username") and self.cleaned_data.get("password")):
            return super().clean()
        attempt = self.attempt
        counted, until = attempt.begin()
        if until:
            self.waits = True
            seconds, at = (until - database_clock.now()).total_seconds(), timezone.localtime(until)
            raise ValidationError(
                "You are not signed in: too many passwords were wrong. "
                f"Try again in {duration(max(1, int(seconds)))}, at {at:%H:%M:%S}."
            )
        try:
            found = super().clean()
        except ValidationError:
            attempt.failed()
            raise
        counted.delete()
        attempt.succeeded()
        return found

    @property
    def attempt(self) -> login_throttle.SignInAttempt:
        """The address is the proxy's unless uvicorn trusts it (docs/how-to/run-behind-a-proxy.md)."""
        name = self.cleaned_data["username"]
        cookie = self.request.COOKIES.get(COOKIE, "") if self.request else ""
        address = self.request.META.get("REMOTE_ADDR") or "" if self.request else ""
        return login_throttle.SignInAttempt(name, address, cookie if _named(cookie) == name else "")


def _named(cookie: str) -> str:
    try:
        return str(signing.loads(cookie, salt=KNOWN, max_age=YEAR))
    except signing.BadSignature:
        return ""


class SignIn(LoginView):
    """Shows why the person was sent here, and keeps the message for the page they return to."""

    template_name = "pgqueue_admin/account/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True
    extra_context = {"themes": context_processors.THEMES}

    def get_context_data(self, **about: Any) -> dict[str, Any]:
        said = messages.get_messages(self.request)
        about["said"] = [*said]
        said.used = False  # type: ignore[union-attr]
        return super().get_context_data(**about)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        known, secure = signing.dumps(form.get_user().get_username(), salt=KNOWN), self.request.is_secure()
        answer.set_cookie(
            COOKIE, known, max_age=YEAR, path=reverse("sign_in"), secure=secure, httponly=True, samesite="Lax"
        )
        return answer

    def form_invalid(self, form: Any) -> HttpResponse:
        answer = super().form_invalid(form)
        answer.status_code = 429 if form.waits else 200
        return answer


class SignOut(LogoutView):
    next_page = "sign_in"


class PasswordView(PasswordChangeView):
    """The change of one's own password: Django admin's page is open to staff only."""

    template_name = "pgqueue_admin/account/password.html"
    success_url = reverse_lazy("password")

    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        login_throttle.changed_password(self.request.user.get_username())
        responses.done(self.request, "Your password is changed. Wherever else you were signed in, you are no more.")
        return answer


urlpatterns = [
    path("sign-in/", SignIn.as_view(), name="sign_in"),
    path("sign-out/", SignOut.as_view(), name="sign_out"),
    path("me/password/", PasswordView.as_view(), name="password"),
]

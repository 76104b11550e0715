"""Sign-in and sign-out: the one page that is open to strangers."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from pgqueue_admin.console import frame


class NameAndPassword(AuthenticationForm):
    """One text for a wrong name and a wrong password; Django takes the same time for both."""

    error_messages = {
        "invalid_login": "Name or password is wrong.",
        "inactive": "Name or password is wrong.",
    }


class SignIn(LoginView):
    """Says why somebody was sent here, and leaves that to be said again by the page they come back to."""

    template_name = "pgqueue_admin/sign_in/page.html"
    authentication_form = NameAndPassword
    redirect_authenticated_user = True
    extra_context = {"themes": frame.THEMES}

    def get_context_data(self, **about: Any) -> dict[str, Any]:
        said = messages.get_messages(self.request)
        about["said"] = [*said]
        said.used = False  # type: ignore[union-attr]
        return super().get_context_data(**about)


class SignOut(LogoutView):
    next_page = "sign_in"


urlpatterns = [
    path("sign-in/", SignIn.as_view(), name="sign_in"),
    path("sign-out/", SignOut.as_view(), name="sign_out"),
]

"""Django admin's login redirects to the console's sign-in: there is only one."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import RedirectURLMixin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse, reverse_lazy


class _Next(RedirectURLMixin):
    """The ``next`` address as Django accepts it: never another host."""

    next_page = "admin:index"

    def __init__(self, request: HttpRequest):
        self.request = request


@login_not_required
def login(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
    """Answer 403 to a signed-in user who is not staff: signing in again would lead back here."""
    wanted = _Next(request).get_success_url()
    if admin.site.has_permission(request):
        return HttpResponseRedirect(wanted)
    if request.user.is_authenticated:
        return render(request, "pgqueue_admin/errors/staff_only.html", status=403)
    return HttpResponseRedirect(f"{reverse('sign_in')}?{urlencode({'next': wanted})}")


admin.site.site_url = reverse_lazy("overview")  # type: ignore[assignment]  # "View site": below PUBLIC_URL's path
admin.site.login = login  # type: ignore[method-assign]

"""Where a request goes: Django admin, and the console for everything else."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("", include("pgqueue_admin.console.urls"))]
handler404 = "pgqueue_admin.console.pages.errors.not_found"

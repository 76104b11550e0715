"""A page per file; each module's ``urlpatterns`` are collected in console.urls."""

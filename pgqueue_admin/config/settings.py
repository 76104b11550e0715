"""Full settings: the console's pages, Django admin, Celery and its schedule. Loopback relaxations: SECURITY.md."""

from urllib.parse import urlsplit

from csp.constants import NONE, SELF

from pgqueue_admin.config import env as given
from pgqueue_admin.config.base_settings import *  # noqa: F403
from pgqueue_admin.config.base_settings import INSTALLED_APPS as _ENGINE_APPS
from pgqueue_admin.config.base_settings import PGQUEUE, SECRET_KEY

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "django_celery_results",
    "django_celery_beat",
    *_ENGINE_APPS,
]
# Async-capable only: one synchronous middleware would hold a thread for every open stream.
MIDDLEWARE = [
    "pgqueue_admin.console.middleware.KnownHost",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "pgqueue_admin.console.middleware.PrivateResponses",
    "pgqueue_admin.console.middleware.RefuseNul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "pgqueue_admin.console.middleware.SignInRequired",
    "pgqueue_admin.console.middleware.LooksLimited",
    "pgqueue_admin.console.scopes.middleware.QueuesInScope",
    "pgqueue_admin.console.middleware.PersonZone",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "pgqueue_admin.console.middleware.ActionOutcome",
]
ROOT_URLCONF = "pgqueue_admin.config.urls"
ASGI_APPLICATION = "pgqueue_admin.config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [given.ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "pgqueue_admin.console.context_processors.page_frame",
            ],
            "builtins": ["pgqueue_admin.console.templatetags.formatting"],
            "libraries": {"messages_ui": "pgqueue_admin.console.templatetags.messages_ui"},
        },
    }
]
STATIC_URL = f"{given.BELOW}static/"
STATICFILES_DIRS = [] if given.INSTALLED else [given.ROOT / "static"]  # a wheel has them in the app
STATIC_ROOT = given.VAR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

AUTHENTICATION_BACKENDS = ["pgqueue_admin.console.account.backend.PersonBackend"]
_VALIDATION = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATION}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATION}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": f"{_VALIDATION}.CommonPasswordValidator"},
]
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "overview"

# CONSOLE.md 5.6, on every page, Django admin included.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

_PUBLIC = urlsplit(given.PUBLIC_URL)
ALLOWED_HOSTS = given.listed("ALLOWED_HOSTS") or ["127.0.0.1", "localhost", "[::1]", _PUBLIC.hostname or ""]
CSRF_TRUSTED_ORIGINS = [given.ORIGIN]
CSRF_FAILURE_VIEW = "pgqueue_admin.console.errors.old_form"
# Cookies are per host, not per port: two consoles on one host would overwrite each other's.
INSTALLATION = given.installation(SECRET_KEY, given.PUBLIC_URL)
SESSION_COOKIE_NAME = f"sessionid_{INSTALLATION}"
CSRF_COOKIE_NAME = f"csrftoken_{INSTALLATION}"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = given.BELOW
SESSION_COOKIE_AGE = PGQUEUE["SESSION_HOURS"] * 3600
MESSAGE_STORAGE = "pgqueue_admin.console.flash_cookie.FlashStorage"
# Switched off without https; SECURITY.md lists these.
SESSION_COOKIE_SECURE = not given.ON_LOOPBACK
CSRF_COOKIE_SECURE = not given.ON_LOOPBACK
SECURE_SSL_REDIRECT = not given.ON_LOOPBACK
SECURE_HSTS_SECONDS = 0 if given.ON_LOOPBACK else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = not given.ON_LOOPBACK
SECURE_HSTS_PRELOAD = not given.ON_LOOPBACK
SECURE_PROXY_SSL_HEADER = None if given.ON_LOOPBACK else ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REDIRECT_EXEMPT = [f"^({given.BELOW[1:]})?(healthz|readyz|metrics)$"]  # probes use plain HTTP

CELERY_BROKER_URL = given.broker("CELERY_BROKER_URL") or "redis://127.0.0.1:1/0"
CELERY_BROKER_USE_SSL = given.broker_tls(CELERY_BROKER_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_RESULT_BACKEND = "django-db"
CELERY_RESULT_EXTENDED = True
CELERY_TASK_TRACK_STARTED = True
CELERY_TASK_IGNORE_RESULT = False
CELERY_TASK_ACKS_LATE = True  # every task is idempotent and found again from PostgreSQL
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
DJANGO_CELERY_BEAT_TZ_AWARE = True

SILENCED_SYSTEM_CHECKS: list[str] = []

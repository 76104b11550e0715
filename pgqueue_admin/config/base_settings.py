"""Base settings, and the only ones of engine processes: PGQUEUE, databases, handler apps. No Celery, no web."""

import logging
import os
import secrets
from pathlib import Path

from pgqueue_admin.config import env as given
from pgqueue_admin.formatting.colours import COLOURS
from pgqueue_admin.transport.sessions.session_opening import ANSWER_SECONDS

env = given.env

# Without SECRET_KEY and without a key of `make run`, each process makes its own; `check --deploy` reports that.
SECRET_KEY = env("SECRET_KEY", default="") or given.STATE.secret_key or f"django-insecure-{secrets.token_hex(32)}"
DEBUG = env.bool("DEBUG", default=False)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "pgqueue_admin",
    *(["pgqueue_admin.demo"] if given.EMBEDDED else []),
    *given.listed("PGQUEUE_HANDLER_APPS"),
]
DATABASES = {
    "default": given.for_console(given.database(given.DATABASE_URL, "DATABASE_URL")),
    "queues": given.for_looking(given.database(given.QUEUES_URL, "QUEUES_URL")),
}
DATABASE_ROUTERS = ["pgqueue_admin.models.router.Router"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-gb"
USE_I18N = False

LOOKED_AT = given.looked_at()
PGQUEUE = {
    "SCHEMAS": given.schemas("public,Legacy,demo,messages" if given.EMBEDDED else "public", LOOKED_AT),
    "LOOKED_AT": LOOKED_AT,
    "ENVIRONMENT": env("ENVIRONMENT", default="") or ("demo" if given.EMBEDDED else ""),
    "ENVIRONMENT_COLOUR": given.one_of("PGQUEUE_ENVIRONMENT_COLOUR", *COLOURS),
    "SAMPLE_SECONDS": given.seconds("PGQUEUE_SAMPLE_SECONDS", 1.0),
    "ANSWER_SECONDS": given.seconds("PGQUEUE_ANSWER_SECONDS", ANSWER_SECONDS),
    "LIVENESS_TIMEOUT_SECONDS": given.seconds("PGQUEUE_LIVENESS_TIMEOUT_SECONDS", 60.0, or_never=True),
    "OUTBOX_DATABASES": given.named("PGQUEUE_OUTBOX_URL_"),
    "ALERT_TO": given.addresses("PGQUEUE_ALERT_TO"),
    "PUBLIC_URL": given.PUBLIC_URL,
    "SESSION_HOURS": given.above_zero("PGQUEUE_SESSION_HOURS", 12, "hours"),
    "IDLE_MINUTES": given.above_zero("PGQUEUE_IDLE_MINUTES", 60, "minutes"),
    "VAR": given.VAR,
    "COMMAND_LINE": given.COMMAND_LINE,
    "ARCHIVE_RETENTION_DAYS": given.days("PGQUEUE_ARCHIVE_RETENTION_DAYS", 0),
    "SPARK_MASTER": env("SPARK_MASTER", default="local[2,4]"),  # an empty value switches history off
    "SPARK_MEMORY": given.memory("SPARK_MEMORY", 512),
    "HISTORY_DIR": given.VAR / "history"
    if not env("PGQUEUE_HISTORY_DIR", default="")
    else Path(env("PGQUEUE_HISTORY_DIR")),
    "HISTORY_URL": given.standby("PGQUEUE_HISTORY_URL"),
    "HISTORY_RETENTION_DAYS": given.days("PGQUEUE_HISTORY_RETENTION_DAYS", 0),
    "TRENDS_MINUTE_RETENTION_DAYS": given.days("PGQUEUE_TRENDS_MINUTE_RETENTION_DAYS", 30),
    "TRENDS_HOUR_RETENTION_DAYS": given.days("PGQUEUE_TRENDS_HOUR_RETENTION_DAYS", 800),
    "HISTORY_BODIES": given.one_of("PGQUEUE_HISTORY_BODIES", "truncate", "keep", "hash", "drop"),
    "BASELINE_TIME_ZONE": given.zone(env("PGQUEUE_BASELINE_TIME_ZONE", default="") or "UTC"),
    "MASKED_HEADERS": given.listed("PGQUEUE_MASKED_HEADERS"),
    "OWN_CODE": given.own_code("PGQUEUE_OWN_CODE"),
    "CAP": 10_000,  # C2: counted exactly up to here
    "EMBEDDED": given.EMBEDDED,
    "OURS": given.OURS,
    "LISTEN": given.LISTEN,
}

# Mail (C7): a server given by URL, else files in var/mail and a notice on Warnings.
_EMAIL = given.mail_server()
EMAIL_BACKEND = _EMAIL.get("EMAIL_BACKEND", "django.core.mail.backends.filebased.EmailBackend")
EMAIL_FILE_PATH = _EMAIL.get("EMAIL_FILE_PATH") or str(given.VAR / "mail")
EMAIL_HOST = _EMAIL.get("EMAIL_HOST") or "localhost"
EMAIL_PORT = _EMAIL.get("EMAIL_PORT") or 25
EMAIL_HOST_USER = _EMAIL.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = _EMAIL.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = _EMAIL.get("EMAIL_USE_TLS", False)
EMAIL_USE_SSL = _EMAIL.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = given.address("PGQUEUE_EMAIL_FROM", "pgqueue-admin@localhost")
PGQUEUE["RENAMED"] = {old: new for old, new in given.RENAMED.items() if old in os.environ}
PGQUEUE["EMAIL_HELO"] = given.greeting(DEFAULT_FROM_EMAIL)

LOG_FORMAT = given.one_of("PGQUEUE_LOG_FORMAT", "line", "json")
logging.captureWarnings(LOG_FORMAT == "json")  # Python prints a warning as two lines of text
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"of_message": {"()": "pgqueue_admin.transport.logs.MessageLogFilter"}},
    "formatters": {
        "line": {
            "()": "pgqueue_admin.transport.logs.LineFormatter",
            "fmt": "%(asctime)s %(levelname)s %(name)s[%(process)d] %(message)s",
        },
        "json": {"()": "pgqueue_admin.transport.logs.JsonFormatter"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["of_message"]}},
    "root": {"handlers": ["stderr"], "level": given.one_of("PGQUEUE_LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR")},
    # These have handlers of their own. Configuring "uvicorn" resets its children: uvicorn.access is silenced again.
    "loggers": {
        **{name: {"handlers": [], "propagate": True} for name in ("django", "uvicorn", "uvicorn.error")},
        "uvicorn.access": {"handlers": [], "propagate": False},
    },
}

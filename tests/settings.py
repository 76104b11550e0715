"""Settings of the tests: independent of the developer's environment and of the project's var/."""

import os
import tempfile
from pathlib import Path

for _name in (
    "DATABASE_URL",
    "QUEUES_URL",
    "CELERY_BROKER_URL",
    "EMAIL_URL",
    "PGQUEUE_ALERT_TO",
    "PUBLIC_URL",
    "SECRET_KEY",
):
    os.environ.pop(_name, None)
for _name in ("PGQUEUE_QUEUE_SCHEMAS", "ENVIRONMENT", "PGQUEUE_ENVIRONMENT_COLOUR", "DEBUG", "ALLOWED_HOSTS"):
    os.environ.pop(_name, None)
os.environ["PGQUEUE_QUEUE_SCHEMAS"] = "public,Legacy,demo"  # tests of the lease queue switch it on
os.environ["SPARK_MASTER"] = ""  # tests of history set it
os.environ["PGQUEUE_STATE_DIR"] = str(Path(tempfile.gettempdir()) / f"pgqueue-tests-{os.getpid()}")

from pgqueue_admin.config.settings import *  # noqa: E402, F403

SECRET_KEY = "of the tests, " * 6
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

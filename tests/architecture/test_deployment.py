"""`check --deploy` with deployment settings, and what `make run` relaxes on loopback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOYED = {
    "SECRET_KEY": "fo1-ty+rM3xq9w_0vd8bn2kLZpyQ6AeXhjCsUgRtWiaB5VmNfD4",
    "PUBLIC_URL": "https://queues.example.com",
    "DATABASE_URL": "postgresql://console@db.example.com/console?sslmode=verify-full",
    "QUEUES_URL": "postgresql://reader@db.example.com/shop?sslmode=verify-full",
    "CELERY_BROKER_URL": "rediss://broker.example.com/0",
    "EMAIL_URL": "smtp+tls://mail.example.com:587",
    "PGQUEUE_ALERT_TO": "oncall@example.com",
    "ENVIRONMENT": "production",
}
RELAXED = [
    "SESSION_COOKIE_SECURE",
    "CSRF_COOKIE_SECURE",
    "SECURE_SSL_REDIRECT",
    "SECURE_HSTS_SECONDS",
    "SECURE_HSTS_INCLUDE_SUBDOMAINS",
    "SECURE_HSTS_PRELOAD",
    "SECURE_PROXY_SSL_HEADER",
]


def run(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {"PATH": os.environ["PATH"], "PGQUEUE_STATE_DIR": "/nonexistent/var"}
    settings = {"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings"}
    return subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, cwd=ROOT, env=plain | settings | environment
    )


def settings_of(**environment: str) -> dict[str, object]:
    program = f"from django.conf import settings; print({{name: getattr(settings, name) for name in {RELAXED!r}}})"
    said = run("-c", program, **environment)
    assert said.returncode == 0, said.stderr
    found: dict[str, object] = eval(said.stdout)
    return found


def test_check_deploy_has_nothing_to_say_to_a_deployment() -> None:
    said = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", **DEPLOYED)
    assert said.returncode == 0, said.stderr


def test_a_deployment_without_a_key_of_its_own_is_told() -> None:
    without = {name: value for name, value in DEPLOYED.items() if name != "SECRET_KEY"}
    assert "security.W009" in run("manage.py", "check", "--deploy", **without).stderr


def test_check_says_what_is_verified_on_each_wire_that_leaves_this_machine() -> None:
    verified = "encrypted, its certificate and name are verified"
    said = run("manage.py", "check", **DEPLOYED).stderr
    for wire in ("DATABASE_URL, db", "QUEUES_URL, db", "CELERY_BROKER_URL, broker", "EMAIL_URL, mail"):
        assert f"(pgqueue.I010) {wire}.example.com: {verified}." in said
    bare = {name: url.split("?")[0].replace("rediss", "redis").replace("+tls", "") for name, url in DEPLOYED.items()}
    said = run("manage.py", "check", **bare, PGQUEUE_HISTORY_URL="postgresql://r@standby/shop?sslmode=require").stderr
    assert said.count("pgqueue.W010") == 5
    assert (
        "DATABASE_URL, db.example.com: encrypted if the server offers it, nobody is verified (sslmode=prefer)." in said
    )
    assert "PGQUEUE_HISTORY_URL, standby: encrypted, nobody is verified (sslmode=require)." in said
    assert "CELERY_BROKER_URL, broker.example.com: not encrypted (redis://)." in said
    assert "EMAIL_URL, mail.example.com: not encrypted (smtp://)." in said


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u@there/x?sslmode=verify-full", "encrypted, its certificate and name are verified"),
        ("postgresql://u@there/x", "encrypted if the server offers it, nobody is verified (sslmode=prefer)"),
        ("mysql://u@there/x?ssl_ca=/ca.pem", "encrypted, its certificate and name are verified"),
        ("mysql://u@there/x?ssl_cert=/c.pem&ssl_key=/k.pem", "encrypted, nobody is verified (no ssl_ca)"),
        ("mysql://u@there/x", "not encrypted (no ssl_ca)"),
        ("mssql://u@there/x?trust_server_certificate=yes", "encrypted, nobody is verified (trust_server_certif"),
    ],
)
def test_check_says_what_is_verified_of_handler_and_outbox_databases(url: str, said: str) -> None:
    told = run("manage.py", "check", **DEPLOYED, PGQUEUE_OUTBOX_URL_STOCK=url).stderr
    number = "I010" if said.endswith("are verified") else "W010"
    assert f"(pgqueue.{number}) PGQUEUE_OUTBOX_URL_STOCK, there: {said}" in told


def test_check_says_nothing_of_wires_that_stay_on_this_machine() -> None:
    here = {
        "DATABASE_URL": "postgresql://u@%2Frun%2Fpostgresql/x",
        "QUEUES_URL": "postgresql://u@[::1],127.0.0.1/x",
        "CELERY_BROKER_URL": "redis://localhost/0",
        "EMAIL_URL": "smtp://localhost:25",
        "PGQUEUE_OUTBOX_URL_STOCK": "mysql://u@there/x?unix_socket=/run/mysqld/socket",
        "PGQUEUE_OUTBOX_URL_BROKEN": "mysql://u:s3#cret@there/x",
    }
    assert "pgqueue.W010" not in run("manage.py", "check", **{**DEPLOYED, **here}).stderr


def test_settings_relaxed_on_loopback_are_documented() -> None:
    loopback, deployed = settings_of(), settings_of(**DEPLOYED)
    assert [name for name in RELAXED if loopback[name]] == []
    assert [name for name in RELAXED if not deployed[name]] == []
    documented = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert [name for name in RELAXED if f"`{name}`" not in documented] == []

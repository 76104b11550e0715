"""The settings keep their promises: an asynchronous stack, one policy on every page, no console on engine children."""

import inspect
import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from django.utils.module_loading import import_string

from pgqueue_admin.config import celery, env
from pgqueue_admin.formatting.colours import COLOURS
from pgqueue_admin.history.sources.partition_queries import BODIES
from tests.architecture.test_deployment import ROOT, run

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}


@pytest.mark.parametrize("name", settings.MIDDLEWARE)
def test_every_middleware_is_asynchronous(name: str) -> None:
    middleware = import_string(name)
    assert middleware.async_capable or inspect.iscoroutinefunction(middleware)


@pytest.mark.usefixtures("console_database")
@pytest.mark.parametrize("path", ["/admin/login/", "/sign-in/", "/no-such-page/"])
def test_the_strict_policy_is_on_every_page(path: str) -> None:
    header = Client().get(path).headers["Content-Security-Policy"]
    assert {part.strip() for part in header.split(";")} == POLICY


def test_both_databases_hold_no_connection_between_requests() -> None:
    from pgqueue_admin.config import web_settings

    for entry in web_settings.DATABASES.values():
        assert entry["CONN_MAX_AGE"] == 0  # a pool refuses any other value
        assert entry["OPTIONS"]["pool"]["max_size"] == 8


@pytest.mark.parametrize(("bind", "url"), [("0.0.0.0", "http://127.0.0.1:81"), ("::", "http://[::1]:81")])
def test_people_are_led_where_it_listens(bind: str, url: str) -> None:
    said = run("-c", "from pgqueue_admin.config import env; print(env.PUBLIC_URL)", PGQUEUE_BIND=bind, PORT="81")
    assert said.stdout.strip() == url


def test_pages_do_not_wait_long_for_the_consoles_own_tables() -> None:
    """A limit in the URL takes precedence; migrations have no limit."""
    from pgqueue_admin.config import web_settings

    assert "-c statement_timeout=10000" in web_settings.DATABASES["default"]["OPTIONS"]["options"]
    assert "statement_timeout" not in settings.DATABASES["default"]["OPTIONS"].get("options", "")
    said = {"URL_OPTIONS": "-c statement_timeout=1s", "OPTIONS": {"options": "-c statement_timeout=1s"}}
    assert env.limited(said, 10) == said


@pytest.mark.usefixtures("console_database")
def test_statements_of_tasks_end() -> None:
    with connections["default"].cursor() as cursor:
        assert cursor.execute("show statement_timeout").fetchone() == ("0",)
    celery._limit_statements()
    connections["default"].close()
    with connections["default"].cursor() as cursor:
        assert cursor.execute("show statement_timeout").fetchone() == ("5min",)


def test_times_are_utc_everywhere() -> None:
    assert (settings.TIME_ZONE, settings.USE_TZ, settings.CELERY_TIMEZONE) == ("UTC", True, "UTC")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("foo", "it is no URL."),
        ("https://user:secret@mail.example.com", "it is https://…."),
    ],
)
def test_a_mail_server_that_is_none_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    monkeypatch.setenv("EMAIL_URL", url)
    with pytest.raises(SystemExit) as refused:
        env.mail_server()
    said = str(refused.value)
    assert said.startswith("EMAIL_URL must be smtp+tls://user:password@host:587")
    assert said.endswith(why)
    assert "secret" not in said


READ: dict[str, Callable[[str], object]] = {
    "DATABASE_URL": lambda url: env.database(url, "DATABASE_URL"),
    "QUEUES_URL": lambda url: env.database(url, "QUEUES_URL"),
    "PGQUEUE_HISTORY_URL": lambda url: env.standby("PGQUEUE_HISTORY_URL"),
    "CELERY_BROKER_URL": lambda url: env.broker("CELERY_BROKER_URL"),
    "EMAIL_URL": lambda url: env.mail_server(),
}
_OF = {"EMAIL_URL": "smtp", "CELERY_BROKER_URL": "redis"}
WRONG = ("{}//u:s3cret@host/0", "{}://u:s3cret/x@host:5/0", "host=h password='s3cret dbname=x", "s3cret")
MALFORMED = [(name, said.format(_OF.get(name, "postgresql"))) for name in READ for said in WRONG]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *MALFORMED,
        ("PGQUEUE_HISTORY_URL", "postgresql://looker:s3cret%zz@standby/db"),
        ("PGQUEUE_HISTORY_URL", "postgresql://looker:s3cret@standby/db?sslmod=require"),
        ("PGQUEUE_HISTORY_URL", "host=standby password=s3cret"),
        ("EMAIL_URL", "smtp://u:s3[cret@host"),
        ("CELERY_BROKER_URL", "redis://host/0;redis://:s3cret/x@host/0"),
    ],
)
def test_a_url_that_is_none_is_refused_and_its_password_said_to_nobody(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], recwarn: Any, name: str, said: str
) -> None:
    monkeypatch.setenv(name, said)
    with pytest.raises(SystemExit, match=f"{name} must be") as refused:
        READ[name](said)
    told = "".join(traceback.format_exception(refused.value)) + "".join(map(str, recwarn)) + "".join(capfd.readouterr())
    assert "s3c" not in told


@pytest.mark.parametrize("name", ["DATABASE_URL", "QUEUES_URL", "PGQUEUE_HISTORY_URL"])
@pytest.mark.parametrize(
    ("parameter", "why"),
    [
        ("schema", "PGQUEUE_QUEUE_SCHEMAS says"),
        ("pgbouncer", "not those of a pooler"),
        ("sslmod", "libpq's documentation"),
    ],
)
def test_a_parameter_that_libpq_does_not_know_is_named(name: str, parameter: str, why: str) -> None:
    refused = run("-c", PRINTED, **{name: f"postgresql://u:s3cret@db.example.com/x?sslmode=require&{parameter}=s3c"})
    (said,) = refused.stderr.strip().splitlines()
    assert said.startswith(f"{name} must be a URL that libpq understands: it knows no parameter “{parameter}”; ")
    assert why in said
    assert "s3c" not in said


@pytest.mark.parametrize(
    "said",
    [
        "https://h/?q=1",
        "queues.example.com",
        "https://h#x",
        "https://u:p@h",
        "https://h//a",
        "https://h/../x",
        "ftp://h",
    ],
)
def test_an_address_that_cannot_be_honoured_is_refused(said: str) -> None:
    refused = run("-c", PRINTED, PUBLIC_URL=said)
    assert (refused.returncode, len(refused.stderr.strip().splitlines())) == (1, 1)
    assert refused.stderr.startswith("PUBLIC_URL must be https://host or https://host:port/path; it is ")


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("rediss://:s3cret@h:6379/0", "rediss://:s3cret@h:6379/0?ssl_cert_reqs=required"),
        ("rediss://h/0?ssl_ca_certs=/ca.pem", "rediss://h/0?ssl_ca_certs=/ca.pem&ssl_cert_reqs=required"),
        ("rediss://h/0?ssl_cert_reqs=none", "rediss://h/0?ssl_cert_reqs=none"),
        ("rediss://a/0;rediss://b/0", "rediss://a/0?ssl_cert_reqs=required;rediss://b/0?ssl_cert_reqs=required"),
        ("redis://h/0", "redis://h/0"),
    ],
)
def test_a_broker_shows_a_certificate_unless_its_url_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, said: str, asked: str
) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", said)
    assert env.broker("CELERY_BROKER_URL") == asked


def test_a_choice_of_certificate_that_is_none_is_refused() -> None:
    refused = run("-c", PRINTED, CELERY_BROKER_URL="rediss://:s3cret@h/0?ssl_cert_reqs=no")
    why = "ssl_cert_reqs in CELERY_BROKER_URL must be required, optional or none; it is no."
    assert (refused.returncode, refused.stderr.strip()) == (1, why)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DATABASE_URL", "postgresql://u:s3cret%25@one:5432,two:5433/db?sslmode=require"),
        ("PGQUEUE_HISTORY_URL", "postgresql://u:s3cret%25@one:5432,two/db?sslmode=require"),
        ("PGQUEUE_HISTORY_URL", "postgres://u@standby/db"),
        ("PGQUEUE_HISTORY_URL", ""),
        ("CELERY_BROKER_URL", "sentinel://one:26379;sentinel://two:26379"),
        ("CELERY_BROKER_URL", "amqps://u:s3cret%2F@host:5671//"),
        ("EMAIL_URL", "consolemail://"),
    ],
)
def test_valid_values_are_accepted(monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    monkeypatch.setenv(name, said)
    assert READ[name](said) is not None


def test_a_mail_server_is_taken_from_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMAIL_URL", "smtp+tls://user:secret@mail.example.com:587")
    found = env.mail_server()
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"], found["EMAIL_USE_TLS"]) == ("mail.example.com", 587, True)
    monkeypatch.setenv("EMAIL_URL", "")
    assert env.mail_server() == {}


@pytest.mark.parametrize("said", ["oncall@x.org;dev@x.org", "ana@x.org, dev@@x.org", "a@x.org b"])
def test_addresses_that_no_mail_reaches_are_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("PGQUEUE_ALERT_TO", said)
    with pytest.raises(SystemExit, match="PGQUEUE_ALERT_TO must be addresses separated by commas"):
        env.addresses("PGQUEUE_ALERT_TO")


@pytest.mark.parametrize("said", ["a@x.org;b@x.org", "a@x.org, b@x.org", "pgqueue@exämple.org", "a@@x.org"])
def test_a_sender_that_is_no_address_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("PGQUEUE_EMAIL_FROM", said)
    with pytest.raises(SystemExit, match="PGQUEUE_EMAIL_FROM must be one address"):
        env.address("PGQUEUE_EMAIL_FROM", "pgqueue@localhost")


def test_addresses_are_taken_as_they_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGQUEUE_ALERT_TO", "ana@x.org, Ünal <dev@exämple.org>,root,")
    assert env.addresses("PGQUEUE_ALERT_TO") == ["ana@x.org", "Ünal <dev@exämple.org>", "root"]
    monkeypatch.setenv("PGQUEUE_EMAIL_FROM", "Queue watch <pgqueue@x.org>")
    assert env.address("PGQUEUE_EMAIL_FROM", "pgqueue@localhost") == "Queue watch <pgqueue@x.org>"
    monkeypatch.setenv("PGQUEUE_EMAIL_FROM", "")
    assert env.address("PGQUEUE_EMAIL_FROM", "pgqueue@localhost") == "pgqueue@localhost"


PRINTED = "from django.conf import settings; s = settings; print(s.PGQUEUE, s.LOGGING, s.ALLOWED_HOSTS, s.DATABASES)"
VARIABLES = re.findall(r"`([A-Z_]{4,})`", (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8"))


def test_a_variable_set_to_nothing_is_as_one_left_out() -> None:
    without = {"PGQUEUE_STATE_DIR", "SPARK_MASTER"}  # a folder of tests; no history
    nothing = run("-c", PRINTED, **dict.fromkeys({*VARIABLES} - without, ""))
    assert nothing.stdout == run("-c", PRINTED).stdout, nothing.stderr
    assert "local[2,4]" in nothing.stdout


def test_no_history_is_kept_where_spark_has_nowhere_to_run() -> None:
    assert "'SPARK_MASTER': ''" in run("-c", PRINTED, SPARK_MASTER="").stdout


def test_liveness_timeout_of_0_kills_no_process() -> None:
    assert "'LIVENESS_TIMEOUT_SECONDS': 0.0" in run("-c", PRINTED, PGQUEUE_LIVENESS_TIMEOUT_SECONDS="0").stdout


@pytest.mark.parametrize(
    ("name", "said", "why"),
    [
        (
            "PGQUEUE_ARCHIVE_RETENTION_DAYS",
            "a month",
            "PGQUEUE_ARCHIVE_RETENTION_DAYS must be a number of days, or 0 for ever; it is a month.",
        ),
        (
            "PGQUEUE_HISTORY_RETENTION_DAYS",
            "-1",
            "PGQUEUE_HISTORY_RETENTION_DAYS must be a number of days, or 0 for ever; it is -1.",
        ),
        ("SPARK_MEMORY", "1t", "SPARK_MEMORY must be MB or GB of memory, such as 1g, and 512m at least; it is 1t."),
        ("SPARK_MEMORY", "256m", "SPARK_MEMORY must be MB or GB of memory, such as 1g, and 512m at least; it is 256m."),
        ("PGQUEUE_IDLE_MINUTES", "0", "PGQUEUE_IDLE_MINUTES must be a number of minutes above 0; it is 0."),
        ("PGQUEUE_SESSION_HOURS", "½", "PGQUEUE_SESSION_HOURS must be a number of hours above 0; it is ½."),
        ("PORT", "abc", "PORT must be a number from 1 to 65535; it is abc."),
        ("PORT", "65536", "PORT must be a number from 1 to 65535; it is 65536."),
        ("PGQUEUE_SAMPLE_SECONDS", "0", "PGQUEUE_SAMPLE_SECONDS must be a number of seconds above 0; it is 0."),
        (
            "PGQUEUE_LIVENESS_TIMEOUT_SECONDS",
            "1m",
            "PGQUEUE_LIVENESS_TIMEOUT_SECONDS must be a number of seconds, or 0 for never; it is 1m.",
        ),
        (
            "PGQUEUE_HISTORY_BODIES",
            "kept",
            "PGQUEUE_HISTORY_BODIES must be truncate or keep or hash or drop; it is kept.",
        ),
        ("PGQUEUE_LOG_LEVEL", "info", "PGQUEUE_LOG_LEVEL must be INFO or DEBUG or WARNING or ERROR; it is info."),
        ("PGQUEUE_ENVIRONMENT_COLOUR", "red", f"PGQUEUE_ENVIRONMENT_COLOUR must be {' or '.join(COLOURS)}; it is red."),
    ],
)
def test_invalid_values_are_refused_in_one_sentence(name: str, said: str, why: str) -> None:
    refused = run("-c", PRINTED, **{name: said})
    assert (refused.returncode, refused.stderr.strip()) == (1, why)


def test_bodies_and_colours_are_those_that_the_page_names() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    for name, words in (("PGQUEUE_HISTORY_BODIES", BODIES), ("PGQUEUE_ENVIRONMENT_COLOUR", COLOURS)):
        (row,) = re.findall(rf"^\| `{name}` \| `(\w+)` \|(.*)", page, re.MULTILINE)
        assert set(re.findall(r"`(\w+)`", row[1])) == set(words)
        assert run("-c", PRINTED, **{name: [*words][-1]}).returncode == 0
        assert f"'{name.removeprefix('PGQUEUE_')}': '{row[0]}'" in run("-c", PRINTED).stdout

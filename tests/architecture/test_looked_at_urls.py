"""URLs of watched databases from variables: an invalid one is refused without showing its password."""

import os
import subprocess
import sys
import traceback

import pytest
from pytest_django import Settings

from pgqueue_admin.alerts import connection_security
from pgqueue_admin.config import env
from pgqueue_admin.dialects import dialect_for

NAME = "QUEUES_URL_BILLING"


def test_a_catalog_of_sql_server_has_schemas_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "mssql://reader:p%40ss@db.example:1433/shop?trust_server_certificate=yes"
    monkeypatch.setenv(NAME, url)
    monkeypatch.setenv("QUEUES_URL_STOCK", "postgresql://reader@db/stock")
    assert env.looked_at() == {
        "billing": {"URL": url, "SCHEMAS": ["dbo"], "WRITABLE": False},
        "stock": {"URL": "postgresql://reader@db/stock", "SCHEMAS": ["public"], "WRITABLE": False},
    }
    monkeypatch.setenv("PGQUEUE_QUEUE_SCHEMAS_BILLING", "ops, dbo")
    assert env.looked_at()["billing"]["SCHEMAS"] == ["ops", "dbo"]


@pytest.mark.parametrize(
    "url",
    [
        "mssql://u:s3cret@host",
        "mssql://u:s3cret@host:sixteen/shop",
        "mssql://u:s3c/ret@host:1433/shop",
        "mssql://u:s3c?ret@host:1433/shop",
        "mssql://u:s3c#ret@host:1433/shop",
        "mssql://u:s3cret@[host/shop",
        "mssql://u:s3cret@host/shop?s3cret=1",
        "mssql://u:s3cret@host/shop?trust_server_certificate=s3cret",
        "sqlserver://u:s3cret@host/shop",
        "Server=host;Password=s3cret",
    ],
)
def test_invalid_url_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(NAME, url)
    with pytest.raises(SystemExit, match=f"{NAME} must be .*mssql://user:password@host:1433/catalog") as refused:
        env.looked_at()
    assert "s3c" not in "".join(traceback.format_exception(refused.value))


def test_a_catalog_is_no_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "mssql://u@host/shop")
    monkeypatch.setenv("PGQUEUE_QUEUE_SCHEMAS_BILLING", "[dbo]@[other]")
    with pytest.raises(SystemExit, match=r"PGQUEUE_QUEUE_SCHEMAS_BILLING: .* has a QUEUES_URL_ of its own"):
        env.looked_at()


def test_without_the_driver_the_extra_is_named() -> None:
    program = "import sys; sys.modules['pytds'] = None; from pgqueue_admin.config import env; env.looked_at()"
    here = {**os.environ, NAME: "mssql://u:s3cret@host/shop"}
    ended = subprocess.run([sys.executable, "-c", program], env=here, capture_output=True, text=True, check=False)
    assert ended.stderr == "QUEUES_URL_BILLING: pytds is not installed: pip install 'pgqueue-admin[sqlserver]'\n"
    assert ended.returncode == 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mssql://reader:s3cret@db:1500/shop?ca=/etc/ca.pem", "mssql://reader@db:1500/shop"),
        ("mssql://db/shop", "mssql://db:1433/shop"),
        ("postgresql://u:s3cret@db:5432/shop", "postgresql://u@db:5432/shop"),
    ],
)
def test_settings_show_where_it_is(url: str, shown: str) -> None:
    assert dialect_for(url).without_password(url) == shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mssql://u@db.example/shop", "encrypted, its certificate and name are verified"),
        ("mssql://u@db.example/shop?trust_server_certificate=yes", "encrypted, nobody is verified (trust_server"),
        ("postgresql://u@db.example/shop?sslmode=require", "encrypted, nobody is verified (sslmode=require)"),
        ("postgresql://u@db.example/shop?sslmode=verify-full", "encrypted, its certificate and name are verified"),
    ],
)
def test_settings_say_whether_the_server_is_verified(settings: Settings, url: str, said: str) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": {"URL": url, "SCHEMAS": ["dbo"]}}}
    (wire,) = [each for each in connection_security.all_of_them() if each.variable == NAME]
    assert wire.host == "db.example"
    assert wire.said.startswith(said)

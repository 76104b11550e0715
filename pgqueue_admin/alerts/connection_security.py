"""What is encrypted and verified on the connection to each server on another machine, by its URL."""

import os
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from django.conf import settings

from pgqueue_admin.dialects import url_parts
from pgqueue_admin.dialects.errors import UrlUnreadable
from pgqueue_admin.dialects.postgresql.connect_options import said_by
from pgqueue_admin.dialects.sqlserver import connect_options

_SMTP = "django.core.mail.backends.smtp.EmailBackend"
_ALL = "encrypted, its certificate and name are verified"
_POSTGRESQL = {
    "verify-full": _ALL,
    "verify-ca": "encrypted, its certificate is verified, its name is not (sslmode=verify-ca)",
    "require": "encrypted, nobody is verified (sslmode=require)",
    "disable": "not encrypted (sslmode=disable)",
}
_PREFERRED = "encrypted if the server offers it, nobody is verified (sslmode={})"
_MYSQL = ("unix_socket", "ssl_ca", "ssl_cert", "ssl_key")
_BROKER = {
    "required": _ALL,
    "optional": "encrypted, any certificate is taken that is shown (ssl_cert_reqs=optional)",
    "none": "encrypted, nobody is verified (ssl_cert_reqs=none)",
}


class ConnectionRisk(NamedTuple):
    variable: str
    host: str
    said: str
    cure: str

    @property
    def verified(self) -> bool:
        return self.said == _ALL


def all_of_them() -> Iterator[ConnectionRisk]:
    for wire in (*_databases(), *_brokers(), *_mail()):
        if any(map(_is_far, wire.host.split(","))):
            yield wire


def _databases() -> Iterator[ConnectionRisk]:
    for alias, variable in (("default", "DATABASE_URL"), ("queues", "QUEUES_URL")):
        entry = settings.DATABASES[alias]
        yield _database(variable, {**entry["OPTIONS"], "host": entry["HOST"]})
    if standby := settings.PGQUEUE["HISTORY_URL"]:
        yield _database("PGQUEUE_HISTORY_URL", said_by(standby))
    for alias, looked_at in settings.PGQUEUE["LOOKED_AT"].items():
        yield _of_url(f"QUEUES_URL_{alias.upper()}", looked_at["URL"])
    for alias, url in settings.PGQUEUE["OUTBOX_DATABASES"].items():
        with suppress(ValueError, UrlUnreadable):  # the page Outboxes reports it
            yield _of_url(f"PGQUEUE_OUTBOX_URL_{alias.upper()}", url)


def _of_url(variable: str, url: str) -> ConnectionRisk:
    """Raises ValueError, or UrlUnreadable."""
    if url.startswith("mssql://"):
        return _sql_server(variable, url)
    return _mysql(variable, url) if url.startswith("mysql://") else _database(variable, said_by(url))


def _database(variable: str, asked: dict[str, Any]) -> ConnectionRisk:
    mode = str(asked.get("sslmode") or os.environ.get("PGSSLMODE") or "prefer")
    if mode == "require" and _authority(asked):
        mode = "verify-ca"  # as in libpq
    cure = "sslmode=verify-full with sslrootcert=/path/ca.pem verifies that the server is the one meant"
    return ConnectionRisk(variable, str(asked.get("host") or ""), _POSTGRESQL.get(mode, _PREFERRED.format(mode)), cure)


def _sql_server(variable: str, url: str) -> ConnectionRisk:
    """Never unencrypted: the driver sends nothing to a server without encryption."""
    asked = connect_options.read(url)
    said = "encrypted, nobody is verified (trust_server_certificate=yes)" if asked.trusts_any else _ALL
    return ConnectionRisk(variable, asked.host, said, "ca=/path/ca.pem verifies that the server is the one meant")


def _mysql(variable: str, url: str) -> ConnectionRisk:
    asked = url_parts.read(url, _MYSQL)
    bare = "encrypted, nobody is verified" if asked.more.keys() & {"ssl_cert", "ssl_key"} else "not encrypted"
    said = _ALL if "ssl_ca" in asked.more else f"{bare} (no ssl_ca)"
    host = asked.more.get("unix_socket") or asked.host
    return ConnectionRisk(
        variable, host, said, "ssl_ca=/path/ca.pem encrypts, and verifies that the server is the one meant"
    )


def _authority(asked: dict[str, Any]) -> bool:
    file = asked.get("sslrootcert") or os.environ.get("PGSSLROOTCERT") or "~/.postgresql/root.crt"
    return Path(os.path.expanduser(str(file))).exists()


def _brokers() -> Iterator[ConnectionRisk]:
    urls: str = getattr(settings, "CELERY_BROKER_URL", "")
    for url in filter(None, urls.split(";")):
        parts = urlsplit(url)
        yield ConnectionRisk(
            "CELERY_BROKER_URL", parts.hostname or "", _of_broker(url), "rediss:// or amqps:// is with TLS"
        )


def _of_broker(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "rediss":
        said = parse_qs(parts.query).get("ssl_cert_reqs", ["required"])[0]
        return _BROKER[said.lower().removeprefix("cert_")]
    if parts.scheme == "amqps":
        return _ALL if settings.CELERY_BROKER_USE_SSL else "encrypted, its certificate is verified, its name is not"
    return f"not encrypted ({parts.scheme}://)"


def _mail() -> Iterator[ConnectionRisk]:
    if settings.EMAIL_BACKEND == _SMTP:
        with_tls = settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL
        cure = "smtp+tls:// is with STARTTLS, smtp+ssl:// with TLS from the start"
        yield ConnectionRisk("EMAIL_URL", settings.EMAIL_HOST, _ALL if with_tls else "not encrypted (smtp://)", cure)


def _is_far(host: str) -> bool:
    """Whether it is neither a socket's folder nor this machine."""
    try:
        return not ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return bool(host) and host != "localhost" and not host.startswith(("/", "@"))

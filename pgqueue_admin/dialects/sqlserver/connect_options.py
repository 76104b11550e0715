"""``mssql://user:password@host:1433/catalog``: encrypted, with the certificate checked against the host name."""

import ssl
from dataclasses import dataclass, field
from typing import Literal

from pgqueue_admin.dialects import url_parts

PORT = 1433
_PARAMETERS = ("ca", "peek_method", "trust_server_certificate")

PeekMethod = Literal["count", "range"]


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """``ca``: a file with the CA of the certificate; empty: the system's."""

    host: str
    port: int
    catalog: str
    user: str
    password: str = field(repr=False)
    ca: str = ""
    trusts_any: bool = False
    peek_method: PeekMethod = "count"

    def context(self) -> ssl.SSLContext:
        """Raises ValueError if the CA's file cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
        except OSError as error:
            raise ValueError(f"ca={self.ca} of the mssql:// URL cannot be read: {error}") from error
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2  # TLS 1.3 needs TDS 8
        if self.trusts_any:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


def read(dsn: str) -> ConnectOptions:
    """Raises ValueError."""
    parts = url_parts.read(dsn, _PARAMETERS)
    more = parts.more
    return ConnectOptions(
        parts.host,
        parts.port or PORT,
        _catalog(parts.path),
        parts.user,
        parts.password,
        more.get("ca", ""),
        _one_of(more, "trust_server_certificate", "no", "yes") == "yes",
        _one_of(more, "peek_method", "count", "range"),  # type: ignore[arg-type]
    )


def _catalog(name: str) -> str:
    if not name:
        raise ValueError("the mssql:// URL names no database: write mssql://user@host/database")
    return name


def _one_of(more: dict[str, str], name: str, *values: str) -> str:
    """The parameter's value, by default the first one."""
    value = more.get(name, values[0])
    if value not in values:
        raise ValueError(f"{name} of the mssql:// URL is {value!r}: it must be {' or '.join(values)}")
    return value

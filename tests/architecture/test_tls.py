"""Connections go only to the server that was meant: real TLS in front of PostgreSQL and Valkey."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.embedded.valkey import Valkey
from tests import tls_relay
from tests.architecture.test_deployment import run
from tests.tls_relay import CERTIFICATE, Relay

OTHER = "127.0.0.2"  # the certificate is for 127.0.0.1
ASK = (
    "from pgqueue_admin.config.celery import app\n"
    "with app.connection_for_write() as broker:\n"
    "    broker.ensure_connection(max_retries=1, interval_start=0)\n"
    "    broker.default_channel.client.ping()\n"
)


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    valkey = Valkey(tmp_path_factory.mktemp("valkey"))
    valkey.start()
    yield valkey
    valkey.stop()


def through(url: str, relay: Relay, scheme: str, host: str = "127.0.0.1") -> str:
    at = urlsplit(url)
    return at._replace(scheme=scheme, netloc=f"{at.netloc.rpartition('@')[0]}@{host}:{relay.port}").geturl()


@pytest.mark.parametrize(
    ("asked", "host", "is_taken"),
    [
        ("", "127.0.0.1", False),
        ("?ssl_cert_reqs=required", "127.0.0.1", False),
        (f"?ssl_ca_certs={CERTIFICATE}", "127.0.0.1", True),
        (f"?ssl_ca_certs={CERTIFICATE}", OTHER, False),
        ("?ssl_cert_reqs=none", OTHER, True),
    ],
)
def test_a_broker_shows_whose_it_is_before_it_is_told_anything(
    valkey: Valkey, asked: str, host: str, is_taken: bool
) -> None:
    with tls_relay.before(valkey.port, host=host) as relay:
        said = run("-c", ASK, CELERY_BROKER_URL=through(valkey.url, relay, "rediss", host) + asked)
        assert (said.returncode == 0) is is_taken, said.stderr
        assert bool(relay.told) is is_taken
    assert is_taken or "certificate" in said.stderr.lower()
    assert "insecure" not in said.stderr


@pytest.mark.parametrize(
    ("trusted", "host", "why"),
    [("/nonexistent", "127.0.0.1", "self-signed certificate"), (str(CERTIFICATE), OTHER, "IP address mismatch")],
)
def test_amqps_broker_is_verified_before_it_is_told_anything(valkey: Valkey, trusted: str, host: str, why: str) -> None:
    with tls_relay.before(valkey.port, host=host) as relay:
        url = f"amqps://u:s3cret@{host}:{relay.port}//"
        said = run("-c", ASK, CELERY_BROKER_URL=url, SSL_CERT_FILE=trusted)
        assert why in said.stderr
        assert relay.told == 0


@pytest.mark.parametrize(
    ("mode", "host", "is_taken"),
    [
        ("require", OTHER, True),
        ("verify-ca&sslrootcert=/nonexistent", "127.0.0.1", False),
        (f"verify-ca&sslrootcert={CERTIFICATE}", OTHER, True),
        (f"verify-full&sslrootcert={CERTIFICATE}", OTHER, False),
        (f"verify-full&sslrootcert={CERTIFICATE}", "127.0.0.1", True),
    ],
)
def test_postgresql_is_verified_as_far_as_its_url_asks(
    database: str, connect: Callable[..., Connection], mode: str, host: str, is_taken: bool
) -> None:
    """As docs/reference/configuration.md and ``manage.py check`` describe each mode."""
    with tls_relay.before(urlsplit(database).port or 0, as_postgresql=True, host=host) as relay:
        url = f"{through(database, relay, 'postgresql', host)}?sslmode={mode}"
        if is_taken:
            assert connect(url).value("select 1") == 1
        else:
            with pytest.raises(DatabaseError, match="certificate"):
                connect(url)
        assert bool(relay.told) is is_taken

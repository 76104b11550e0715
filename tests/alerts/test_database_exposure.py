"""A superuser role, and roles that may create on our search path: the warning names them and a cure that works."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO

import pytest
from django.core.management import call_command

from pgqueue_admin.alerts.alerter import Alerter
from pgqueue_admin.alerts.checks import others_code
from pgqueue_admin.alerts.database_exposure import Exposure, of_console, of_handlers, of_queues
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Alert, Endpoint
from tests.console.sampled import elsewhere


@pytest.fixture
def owner(console_database: str, connect: Callable[[str], Connection]) -> Iterator[Connection]:
    connection = connect(console_database)
    connection.run("create role plain login password 'plain'; create role eve")
    connection.run("""grant usage on schema pgqueue_console, messages to plain;
        grant all on all tables in schema pgqueue_console, messages to plain;
        grant all on all sequences in schema pgqueue_console, messages to plain""")
    yield connection
    connection.run("revoke create on schema pg_catalog from eve; drop owned by plain, eve; drop role plain, eve")


@contextmanager
def as_plain(*aliases: str) -> Iterator[None]:
    plain = {"USER": "plain", "PASSWORD": "plain"}
    if not aliases:
        yield
        return
    with elsewhere(aliases[0], **plain), as_plain(*aliases[1:]):
        yield


def found() -> list[str]:
    return [f"{each.subject}: {each.said.fact}" for each in (*of_console(), *of_queues())]


def test_a_role_with_no_more_than_it_needs_is_nothing_to_tell(owner: Connection) -> None:
    with as_plain("default", "queues"):
        assert found() == []


def test_a_superuser_is_named_once_for_each_url_that_has_one(owner: Connection) -> None:
    assert found() == ["DATABASE_URL: The role postgres of DATABASE_URL is a superuser"], "one database, one role"
    with as_plain("default"):
        assert found() == ["QUEUES_URL: The role postgres of QUEUES_URL is a superuser"]
    with as_plain("queues"):
        assert found() == ["DATABASE_URL: The role postgres of DATABASE_URL is a superuser"]


def test_the_role_that_made_the_cluster_cannot_be_made_less(owner: Connection) -> None:
    (said,) = of_console()
    assert "a role of its own" in said.said.meaning
    owner.run("alter role plain superuser")
    with as_plain("default"):
        (other,) = of_console()
    owner.run(other.said.meaning.partition("Run: ")[2].partition(" What it needs")[0])
    with as_plain("default"):
        assert not list(of_console())


@pytest.mark.parametrize("schema", ["pgqueue_console", "pg_catalog"])
@pytest.mark.parametrize(("who", "said"), [("eve", "The role eve"), ("public", "Everybody")])
def test_other_role_with_create_is_named_until_the_cure_is_run(
    owner: Connection, schema: str, who: str, said: str
) -> None:
    owner.run(f"grant create on schema {schema} to {who}")
    with as_plain("default", "queues"):
        (exposed,) = of_console()
        assert exposed.said.fact == f"{said} may create in the schema {schema} of DATABASE_URL"
        owner.run(exposed.said.meaning.partition("Run: ")[2])
        assert not list(of_console())


def test_foreign_owner_of_the_console_schema_is_named(owner: Connection) -> None:
    owner.run("alter schema pgqueue_console owner to eve; grant usage on schema pgqueue_console to plain")
    with as_plain("default", "queues"):
        assert found() == ["DATABASE_URL: The role eve may create in the schema pgqueue_console of DATABASE_URL"]
    owner.run("alter schema pgqueue_console owner to current_user")


def test_exposure_opens_and_resolves_as_a_warning(owner: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.run("grant create on schema pgqueue_console to eve")
    with as_plain("default", "queues"):
        Alerter().run_once()
        opened = Alert.objects.get(kind="database_exposed")
        assert (opened.subject, opened.severity, opened.resolved_at) == ("DATABASE_URL", "warning", None)
        owner.run("revoke create on schema pgqueue_console from eve")
        Alerter().run_once()
        assert Alert.objects.get(kind="database_exposed").resolved_at


def test_exposure_is_cached_between_looks(owner: Connection) -> None:
    exposure = Exposure()
    assert exposure.newest()
    with as_plain("default", "queues"):
        assert exposure.newest(), "what was seen a moment ago"


def test_check_says_the_same(owner: Connection) -> None:
    owner.run("grant create on schema public to public")
    said = StringIO()
    call_command("check", databases=["default", "queues"], stderr=said)
    assert "pgqueue.W011" in said.getvalue()
    assert "DATABASE_URL: The role postgres of DATABASE_URL is a superuser" in said.getvalue()
    assert "pgqueue.I011) Everybody may create in the schema public" in said.getvalue()
    assert "revoke create on schema public from public;" in said.getvalue().replace('"', "")


@pytest.mark.parametrize(("who", "said"), [("eve", "The role eve"), ("public", "Everybody")])
def test_role_with_create_on_the_handlers_path_is_named_until_cured(owner: Connection, who: str, said: str) -> None:
    """The path comes from the URL, the role or the database; the default is ``public``."""
    owner.run(f"grant create on schema public to {who}")
    with as_plain("default", "queues"):
        assert list(of_handlers()) == [], "nobody has handlers"
        assert infos() == [f"{said} may create in the schema public of QUEUES_URL."]
        Endpoint.objects.create(name="Sales", ours=True)
        (exposed,) = of_handlers()
        assert exposed.said.fact == f"{said} may create in the schema public of QUEUES_URL"
        assert "can run as plain" in exposed.said.meaning
        Alerter().run_once()
        assert said in Alert.objects.get(kind="database_exposed", resolved_at=None).sentence
        owner.run("alter role plain set search_path = pg_catalog, messages")
        assert list(of_handlers()) == []
        owner.run("alter role plain reset search_path")
        owner.run(exposed.said.meaning.partition("Run: ")[2])
        assert list(of_handlers()) == []
        assert infos() == []


def infos() -> list[str]:
    return [each.msg for each in others_code(["queues"]) if each.id == "pgqueue.I011"]

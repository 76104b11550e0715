"""Variables that an operator sets in .env beside compose.yaml reach the programs, or have a reason not to."""

import re

import pytest

from tests.architecture.test_deploy import COMPOSE, NAMES, ROOT

DOCUMENTED = {
    name
    for row in re.findall(
        r"^\| ((?:`[A-Z_]+`(?:, )?)+) \|",
        (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    for name in re.findall("[A-Z_]+", row)
}
DECIDED_THERE = {
    "DATABASE_URL": "the PostgreSQL beside the programs is the console's own",
    "CELERY_BROKER_URL": "the Valkey beside them",
    "PGQUEUE_BIND": "each in its container listens everywhere; `ports` says where from it is reached",
    "PORT": "as PGQUEUE_BIND",
    "PGQUEUE_STATE_DIR": "the volume; the image sets it",
    "PGQUEUE_HOST": "each service has a fixed `hostname`, and the console that of the supervisor",
    "PGQUEUE_PG_BIN": "no embedded PostgreSQL",
    "PGQUEUE_INSTALL_HISTORY": "the image has Spark",
    "JAVA_HOME": "the image has a Java; that of your shell is none of the container's",
    "QUEUES_URL_": "the beginning of names: .env as a whole is read by every program",
    "PGQUEUE_QUEUE_SCHEMAS_": "likewise",
    "PGQUEUE_WRITABLE_": "likewise",
    "PGQUEUE_OUTBOX_URL_": "likewise",
    "DEBUG": "never where others reach the console",
}


def test_every_variable_is_passed_or_decided() -> None:
    assert len(DOCUMENTED) > 30
    for name in [*NAMES, "setup"]:
        passed = set(COMPOSE["services"][name]["environment"])
        assert DOCUMENTED - passed - DECIDED_THERE.keys() == set()
    assert DECIDED_THERE.keys() <= DOCUMENTED


def test_names_of_ones_own_are_read_by_every_program() -> None:
    for name in [*NAMES, "setup"]:
        assert COMPOSE["services"][name]["env_file"] == [{"path": ".env", "required": False}]


@pytest.mark.parametrize("name", sorted(DOCUMENTED - DECIDED_THERE.keys()))
def test_variables_of_env_are_passed_unchanged(name: str) -> None:
    for service in [*NAMES, "setup"]:
        given = COMPOSE["services"][service]["environment"][name]
        assert given is None or given.startswith((f"${{{name}:-", f"${{{name}:?")), "passed on, or with a default"


def test_no_history_can_be_said() -> None:
    """An empty value means "no history": a default would undo it, and an empty default would always switch it off."""
    assert COMPOSE["services"]["supervisor"]["environment"]["SPARK_MASTER"] is None

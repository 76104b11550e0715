"""QUEUES_URL_<NAME>: a wrong value is refused at start, in one sentence, without its password."""

import pytest

from tests.architecture.test_deployment import run

SAY = "from pgqueue_admin.config import env; print(env.looked_at(), env.schemas('public', env.looked_at()))"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"QUEUES_URL_BILLING": "mysql://u:secret@h/db"}, "QUEUES_URL_BILLING must be postgresql://"),
        ({"QUEUES_URL_BILLING": "postgresql://u:secret@h:x/db"}, "QUEUES_URL_BILLING must be postgresql://"),
        ({"QUEUES_URL_BILLING": "postgresql://u:secret@h/db?schema=x"}, "it knows no parameter “schema”"),
        ({"QUEUES_URL_1": "postgresql://u:secret@h/db"}, "QUEUES_URL_1: an alias is a letter"),
        ({"PGQUEUE_QUEUE_SCHEMAS_BILLING": "public"}, "there is no QUEUES_URL_BILLING"),
        ({"PGQUEUE_WRITABLE_BILLING": "yes"}, "PGQUEUE_WRITABLE_BILLING is of no database"),
        (
            {"QUEUES_URL_BILLING": "postgresql://h/db", "PGQUEUE_WRITABLE_BILLING": "true"},
            "PGQUEUE_WRITABLE_BILLING must be yes or no; it is true",
        ),
        (
            {"QUEUES_URL_BILLING": "postgresql://h/db", "PGQUEUE_QUEUE_SCHEMAS": "public,billing:public"},
            "The schema billing:public in PGQUEUE_QUEUE_SCHEMAS",
        ),
    ],
)
def test_a_wrong_one_is_refused(said: dict[str, str], sentence: str) -> None:
    ended = run("-c", SAY, **said)
    assert ended.returncode
    assert sentence in ended.stderr
    assert "secret" not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_alias_and_schemas() -> None:
    said = {"QUEUES_URL_BILLING": "postgresql://h/db", "PGQUEUE_QUEUE_SCHEMAS_BILLING": "public, Legacy"}
    found = "{'billing': {'URL': 'postgresql://h/db', 'SCHEMAS': ['public', 'Legacy'], 'WRITABLE': False}}"
    assert run("-c", SAY, **said, QUEUES_URL_STOCK="").stdout.strip() == f"{found} ['public']"

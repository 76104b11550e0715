"""What the URL of the queues says of its sessions holds for the source, beside what we say ourselves."""

from urllib.parse import quote

from pgqueue_admin.config import environment
from pgqueue_admin.records.source import source
from tests.console.sampled import elsewhere


def test_options_of_the_url_are_honoured_and_ours_win(console_database: str) -> None:
    said = quote("-c work_mem=7MB -c timezone=Asia/Tokyo -c statement_timeout=1")
    entry = environment.for_looking(environment.database(f"{console_database}?options={said}", "QUEUES_URL"))
    assert "default_transaction_read_only=on" in entry["OPTIONS"]["options"], "Django's own sessions only look"
    shown = {}
    with elsewhere("queues", **entry):
        for name, session in (("reading", source().reading()), ("writing", source().writing())):
            with session as connection:
                asked = ("work_mem", "timezone", "statement_timeout", "default_transaction_read_only")
                shown[name] = [connection.value(f"show {each}") for each in asked]
    assert shown == {"reading": ["7MB", "UTC", "5s", "on"], "writing": ["7MB", "UTC", "5min", "off"]}

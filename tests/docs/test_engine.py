"""Every setting, mode and call of the engine is documented, and every documented name exists."""

import re
from dataclasses import fields
from pathlib import Path
from pkgutil import resolve_name

import pytest

from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.transport import Endpoint, EndpointSettings
from pgqueue_admin.transport.settings import _CHOICES

DOCS = Path(__file__).resolve().parents[2] / "docs"
ENGINE = (DOCS / "reference/engine.md").read_text(encoding="utf-8")
API = (DOCS / "reference/engine-api.md").read_text(encoding="utf-8")
BY_MODULE = re.compile(r"`(?:pgqueue_admin\.)?((?:transport|actions|checks)\.[\w.]+)")
TUNING = (DOCS / "how-to/tune.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [field.name for field in fields(EndpointSettings)])
def test_every_setting_has_its_row(name: str) -> None:
    assert re.search(rf"^- `{name}`.*: [A-Z`]", API, re.MULTILINE)


@pytest.mark.parametrize("value", [value for values in _CHOICES.values() for value in values])
def test_every_choice_is_named(value: str) -> None:
    assert f"`{value}`" in API


@pytest.mark.parametrize(
    "name",
    [name for name in dir(Endpoint) if not name.startswith("_") and name not in {"connect", "wait", "in_flight"}],
)
def test_every_call_of_an_endpoint_is_named(name: str) -> None:
    assert f"- `{name}(" in API.partition("\n## Endpoint\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", ["concurrency", "peek_delay", "max_records_to_peek", "immediate_retries"])
def test_tuning_names_what_can_be_tuned(name: str) -> None:
    assert f"`{name}`" in TUNING


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`(?:pgqueue_admin\.)?((?:transport|actions|checks)\.[\w.]+)", ENGINE)))
)
def test_objects_named_by_module_exist(name: str) -> None:
    assert resolve_name(f"pgqueue_admin.{name}")


def test_a_row_has_the_engine_s_defaults_save_its_concurrency() -> None:
    """docs/reference/managed-endpoints.md refers its reader to the engine for them."""
    row, engine, workers = (
        Row(),
        EndpointSettings(),
        (DOCS / "reference/managed-endpoints.md").read_text(encoding="utf-8"),
    )
    same = {field.name for field in fields(EndpointSettings)} & {field.name for field in Row._meta.fields}
    assert {name for name in same if getattr(row, name) != getattr(engine, name)} - {"concurrency", "outbox"} == {
        "error_queue"
    }
    assert row.peek_delay_ms == engine.peek_delay * 1000
    assert row.delayed_retry_step_ms == engine.delayed_retry_step * 1000
    assert f"concurrency of an endpoint that is run here is {row.concurrency} in each process" in " ".join(
        workers.split()
    )

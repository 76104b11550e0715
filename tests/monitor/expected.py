"""Facts about the recorded database, computed with plain SQL when it was recorded."""

import json
from pathlib import Path
from typing import Any

from pgqueue_admin.dialects import Address

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "fixtures/nservicebus/expected.json").read_text())


def by_address(noun: str) -> dict[Address, dict[str, Any]]:
    return {Address(each["schema"], each["table"]): each for each in EXPECTED[noun]}

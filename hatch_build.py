"""What the wheel depends on: ranges that begin at the pins of requirements*.txt. Run by hatchling, which builds it."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PIN = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[\w,-]+\])?==(?P<version>(?P<major>\d+)\S*)")


class PinnedRequirements(MetadataHookInterface):
    """``engine`` of pyproject.toml names what the engine needs: that alone comes without an extra."""

    def update(self, metadata: dict[str, Any]) -> None:
        product = self._ranges("requirements.txt")
        metadata["dependencies"] = [product.pop(name) for name in self.config["engine"]]
        files = {extra: self._ranges(file) for extra, file in self.config["extras"].items()}
        metadata["optional-dependencies"] = {
            extra: list(ranges.values()) for extra, ranges in {"console": product, **files}.items()
        }

    def _ranges(self, file: str) -> dict[str, str]:
        """By name. From what is pinned, which is what is tested, to the next major version."""
        lines = Path(self.root, file).read_text(encoding="utf-8").splitlines()
        pins = [_pin(line, file) for line in lines if line and not line.startswith("#")]
        return {
            pin["name"]: f"{pin['name']}{pin['extras'] or ''}>={pin['version']},<{int(pin['major']) + 1}"
            for pin in pins
        }


def _pin(line: str, file: str) -> re.Match[str]:
    if not (pin := PIN.fullmatch(line)):
        raise ValueError(f"{file}: “{line}” is no pin, such as orjson==3.13.0")
    return pin

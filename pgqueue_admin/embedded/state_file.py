"""The file with the addresses of the embedded servers; settings read it for variables that are unset."""

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class ServerState:
    """Empty values: never started."""

    dsn: str = ""
    broker_url: str = ""
    secret_key: str = ""
    postgresql_port: int = 0
    valkey_port: int = 0


def read(var: Path) -> ServerState:
    try:
        found = json.loads((var / "state.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return ServerState()
    known = {field.name for field in fields(ServerState)}
    return ServerState(**{name: value for name, value in found.items() if name in known})


def write(var: Path, state: ServerState) -> None:
    """Replace the file atomically, so that no reader sees half of it. Mode 0600, because it holds passwords."""
    var.mkdir(parents=True, exist_ok=True)
    half = var / "state.json.half"
    half.touch(mode=0o600)
    half.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
    os.replace(half, var / "state.json")

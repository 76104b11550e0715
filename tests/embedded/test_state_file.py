"""Where the embedded servers are, as a file."""

from pathlib import Path

from pgqueue_admin.embedded import state_file
from pgqueue_admin.embedded.state_file import ServerState


def test_never_started_is_empty(tmp_path: Path) -> None:
    assert state_file.read(tmp_path) == ServerState()


def test_what_was_written_is_read_by_nobody_else(tmp_path: Path) -> None:
    written = ServerState(dsn="postgresql://x", secret_key="y", postgresql_port=5)
    state_file.write(tmp_path / "var", written)
    assert state_file.read(tmp_path / "var") == written
    assert (tmp_path / "var/state.json").stat().st_mode & 0o777 == 0o600


def test_a_field_of_a_newer_version_and_half_a_file_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"dsn": "x", "newer": 1}')
    assert state_file.read(tmp_path).dsn == "x"
    (tmp_path / "state.json").write_text('{"dsn": ')
    assert state_file.read(tmp_path) == ServerState()

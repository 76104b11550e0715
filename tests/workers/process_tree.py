"""The processes of one running product, found by its state folder."""

import os
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

from pgqueue_admin.embedded import ports
from tests.waiting import within


def processes(var: Path) -> dict[int, str]:
    """Command lines by pid, without zombies, of processes with this PGQUEUE_STATE_DIR or working in its folders."""
    numbered = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and int(entry.name) != os.getpid()]
    return {int(entry.name): command for entry in numbered if (command := _command(entry, var))}


def _command(entry: Path, var: Path) -> str:
    """The command line; "" for other processes. PostgreSQL overwrites its environment, but stays in its data folder."""
    try:
        environment = (entry / "environ").read_bytes().split(b"\0")
        if f"PGQUEUE_STATE_DIR={var}".encode() not in environment and not (entry / "cwd").readlink().is_relative_to(
            var
        ):
            return ""
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def the_one(var: Path, *words: str) -> int:
    """The pid of the process whose command line has all these words; of several, their parent."""
    return min(pid for pid, command in processes(var).items() if all(word in command for word in words))


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def none_left(var: Path, seconds: float) -> None:
    within(seconds, lambda: not processes(var), f"no process is left of {processes(var)}")


def answer(url: str) -> int:
    """The status of a GET; 0 without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return int(error.code)
    except OSError:
        return 0


def free_port() -> int:
    return ports.free()


def listening(port: int) -> socket.socket:
    taken = socket.socket()
    taken.bind(("127.0.0.1", port))
    taken.listen()
    return taken

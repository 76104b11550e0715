"""What Spark's Python workers on this machine are started with: our own Python, reading the pyspark that is installed.

Spark puts a zip of pyspark before it, and what comes from a zip is compiled anew by each process: a second of it.
"""

import os
import shlex
import sys
from pathlib import Path

_WRAPPER = """#!/bin/bash
export PYTHONPATH="${{PYTHONPATH//pyspark.zip/}}"
exec {python} "$@"
"""


def executable(folder: Path) -> Path:
    """``folder``: where it may be written; where nothing may be executed there, Python itself."""
    wrapper = folder / "bin/python"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    made = wrapper.with_suffix(f".{os.getpid()}")
    made.write_text(_WRAPPER.format(python=shlex.quote(sys.executable)))
    made.chmod(0o755)
    made.replace(wrapper)  # another driver may be starting workers with it
    return wrapper if os.access(wrapper, os.X_OK) else Path(sys.executable)

"""Spark's Java logs nothing while all is well, and errors in lines like the rest of the product."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SAYS = """
import sys
from pathlib import Path
from pgqueue_admin.history.spark.session import session

spark = session("local[1]", Path(sys.argv[1]), logs=sys.argv[2])
spark.range(3).count()
log = spark._jvm.org.slf4j.LoggerFactory.getLogger("org.apache.spark.Some")
log.warn("a little rain")
log.error("it poured", spark._jvm.java.lang.IllegalStateException("wet"))
heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()
print(heap, spark.sparkContext.uiWebUrl)
spark.stop()
"""
OF_THE_LAUNCHER = {
    "WARNING: Using incubator modules: jdk.incubator.vector",  # of the machine's Java
    "WARNING: package sun.security.action not in java.base",  # of the wheel's, which is newer
}


@pytest.mark.parametrize("format", ["line", "json"])
def test_java_log_has_errors_only(var: Path, format: str) -> None:
    command = [sys.executable, "-c", SAYS, str(var / "spark"), format]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    first, *said = ran.stderr.splitlines()
    assert first in OF_THE_LAUNCHER
    if format == "json":
        (line,) = map(json.loads, said)
        assert (line["level"], line["logger"], line["text"]) == ("ERROR", "org.apache.spark.Some", "it poured")
        assert line["exception"].startswith("java.lang.IllegalStateException: wet")
        assert line["time"].endswith("+00:00")
        assert line["process"] == "java"
    else:
        assert said[0].endswith(" ERROR org.apache.spark.Some[java] it poured")
        assert said[1] == "java.lang.IllegalStateException: wet"
        assert all(line.startswith("\tat ") for line in said[2:])
    heap, page = ran.stdout.split()
    assert int(heap) <= 512 * 1024 * 1024
    assert page == "None", "Spark's own pages are off"

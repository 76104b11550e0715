"""The Spark session of a driver: in one process by default, on a cluster by SPARK_MASTER."""

import logging
import os
import shlex
import sys
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from pgqueue_admin.history.runtime import driver_environment, java, java_log, jvm_cds
from pgqueue_admin.history.spark import cluster_check, queue_reader
from pgqueue_admin.history.spark.transforms import rollups
from pgqueue_admin.osproc import idle_cgroup

# Spark generates one method per batch, around the 8,000 bytes above which Java would not compile it.
_EVERYWHERE = "-XX:-DontCompileHugeMethods -Duser.timezone=UTC"
# Java's second compiler pays off only for code that runs for each row: six times its default thresholds
_HOT = "-XX:Tier4InvocationThreshold=30000 -XX:Tier4MinInvocationThreshold=3600 -XX:Tier4CompileThreshold=90000"
_JVM = f"-XX:+UseSerialGC {_HOT} -XX:Tier4BackEdgeThreshold=240000 {_EVERYWHERE}"


def session(
    master: str, scratch: Path, jvm: str | None = None, logs: str = "line", memory: str = "512m"
) -> SparkSession:
    """``scratch``: for executables and spills; ``jvm``: options in place of the class archive; ``logs`` and ``memory``:
    PGQUEUE_LOG_FORMAT, SPARK_MEMORY. Raises JavaMissing."""
    logging.getLogger("py4j").setLevel(logging.WARNING)
    if is_local(master):
        os.environ["PYSPARK_PYTHON"] = str(driver_environment.executable(scratch))
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if home := java.home(scratch / "java"):
        os.environ["JAVA_HOME"] = str(home)
    built = SparkSession.builder.master(master).appName("pgqueue history")
    archive = jvm_cds.used(scratch) if jvm is None else jvm
    quiet = java_log.option(scratch, logs)
    jvm = f"{quiet} {archive} {driver_environment.account_options(scratch)}"
    for key, value in _settings(scratch, driver_environment.scratch_folder(scratch), jvm, memory).items():
        built = built.config(key, value)
    with java_log.heard():
        spark: SparkSession = built.getOrCreate()
    driver_environment.sign_in(spark)
    if is_local(master):
        idle_cgroup.put(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    carry_our_code(spark)
    return spark


def is_local(master: str) -> bool:
    return master.startswith("local")


def _settings(scratch: Path, temporary: Path, jvm: str, memory: str) -> dict[str, str]:
    return {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"{_JVM} {shlex.quote(f'-Djava.io.tmpdir={temporary}')} {jvm}",
        "spark.executor.extraJavaOptions": _EVERYWHERE,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(temporary),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "16384",  # groups: minutes times kinds of message
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Rows may have megabytes. Each partition holds one columnar batch in memory when reading, and when writing the
        # rows since the last size check. Small rows are no slower.
        "spark.sql.parquet.columnarReaderBatchSize": "16",
        "spark.hadoop.parquet.page.size.row.check.min": "4",
        "spark.hadoop.parquet.block.size": str(32 * 1024 * 1024),
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # it looks up where each column was written
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }


def carry_our_code(spark: SparkSession) -> None:
    """Executors have Python and Arrow, but not this package."""
    for module in (queue_reader, rollups, cluster_check):
        cloudpickle.register_pickle_by_value(module)
    spark.dataSource.register(queue_reader.QueueHistory)

"""The only builder of a SparkSession, for every master: the same code on a laptop and on a cluster.

On this machine the driver is this process and starts its JVM itself: 1 s faster than through spark-submit, with the same
options. In cluster deploy mode Spark has started both already. What a user sets by Spark's options wins over everything
here, but for what results depend on.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from jobs import interrupts
from jobs.command_line import parser
from jobs.environment import setup as environment
from jobs.environment.compiled_code import numba_cache
from jobs.faults import ending, is_sparks, reason
from store_io.base.errors import StoreError
from store_io.base.scratch import Scratch, remove_left

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

# The JVM only plans small jobs here: the first compiler is enough and starts at once, one thread collects its garbage, and
# the JVM's messages about its class archive help no user.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:disable")

# Results depend on these: they hold whatever a user sets.
FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
DEFAULTS = {
    "spark.app.name": "store-audit",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # jobs.audit.run_audit draws its own
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.shuffle.partitions": "2",  # only summaries are ever shuffled
    "spark.sql.adaptive.enabled": "false",  # plans over a few small rows: nothing to adapt
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",  # else a task per file lists a large store's segments
    "spark.databricks.delta.snapshotPartitions": "2",  # Delta reads its log in 50 partitions by default
}
LOCAL_DEFAULTS = {
    # The name of a machine that moves between networks may lead nowhere.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_LOST = {"Py4JNetworkError", "Py4JError"}  # the connection to the JVM was
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LOCAL = re.compile(r"local(?:\[([0-9]+|\*)\])?")
_TASK_FAILURES = "4"  # Spark's own default on clusters
_DELTA = "io.delta.sql.DeltaSparkSessionExtension"


class SparkFailed(StoreError):
    """Spark did not start; the sentence holds what the JVM said."""


class Session:
    """A started Spark: `.spark` and, when done, `.stop()`. Use as a context manager."""

    def __init__(
        self,
        spark: SparkSession,
        jvm: subprocess.Popen[bytes] | None,
        log: IO[bytes] | None,
        sent: tempfile.TemporaryDirectory[str] | None,
        scratch: Scratch | None,
    ) -> None:
        self.spark = spark
        self._jvm = jvm
        self._log = log
        self._sent = sent
        self._scratch = scratch

    def stop(self, wait: bool = False) -> None:
        """End Spark and its JVM. wait: until the JVM is gone, which deletes its scratch files after we have ended."""
        context = self.spark.sparkContext
        application = ""
        try:
            application = str(context.applicationId)
            self.spark.stop()
        except Exception:  # the JVM has crashed, or an interrupt has left the connection to it in the middle of a call
            if self._jvm is not None:
                self._jvm.terminate()
        if self._jvm is not None:
            context._gateway.shutdown()  # type: ignore[union-attr]
            type(context)._gateway = type(context)._jvm = None  # a later start in this process begins anew
            if self._jvm.stdin is not None:
                self._jvm.stdin.close()
            if wait:
                self._jvm.wait(120)
        if self._log is not None:
            self._log.close()
        if self._sent is not None:
            self._sent.cleanup()
        if self._scratch is not None:
            self._scratch.remove()
        if application and str(context.master).startswith(
            "local-cluster"
        ):  # its workers leave what they fetched in Spark's own folder
            import pyspark

            shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        # Said before the JVM is gone: it holds the text.
        failed = SparkFailed(f"Spark failed: {self._why(problem)}") if problem is not None and is_sparks(problem) else None
        if self._jvm is not None and kind is not None and not issubclass(kind, Exception):
            self._jvm.terminate()  # interrupted within a call to the JVM: it cannot be asked to stop
            if self._scratch is not None:
                self._scratch.remove()
        else:
            self.stop()
        if failed is not None:
            raise failed from problem

    def _why(self, problem: BaseException) -> str:
        if self._jvm is not None and type(problem).__name__ in _LOST:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return f"its JVM has ended in the middle ({ending(self._jvm.wait(5))}); is memory short?"
        if "Python worker exited unexpectedly" in (why := reason(problem)):
            return "its Python workers were lost again and again; is memory short?"
        return why


def start(spark_words: Sequence[str] = (), java_options: Sequence[str] = ()) -> Session:
    """Start Spark with these of Spark's own options (as `jobs.command_line.options.parse` sorted them out).

    java_options: more of the JVM's own, for this driver.  Raises SparkFailed; SetupFailed where there is no Java.
    """
    _prepare_process()
    from pyspark import SparkContext, java_gateway
    from pyspark.java_gateway import launch_gateway
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    for name in _QUERY_LOGGERS:  # what they log is raised as well: a page of JSON
        PySparkLogger.getLogger(name).disabled = True
    log = jvm = scratch = None
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # Spark has started this driver
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    else:
        remove_left()
        try:
            scratch = Scratch()
        except OSError as problem:
            raise SparkFailed(
                f"no folder for temporary files can be made in {tempfile.gettempdir()}: {reason(problem)}"
            ) from None
        os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(_submit_words(spark_words, java_options, scratch.path))
        # Spark's own log and the JVM's warnings stay off the terminal; an error shows them.
        verbose = "--verbose" in spark_words
        log = None if verbose else tempfile.TemporaryFile(prefix="store-audit-jvm-")
        try:
            output = {} if verbose else {"stdout": log, "stderr": log}
            with _ended_unless_it_starts(java_gateway):
                gateway = launch_gateway(popen_kwargs=output)  # type: ignore[no-untyped-call]
        except BaseException as problem:
            scratch.remove()
            if not isinstance(problem, Exception):
                raise
            raise SparkFailed(f"Spark's JVM did not start: {_reason(problem, log)}") from None
        jvm = gateway.proc
    try:
        SparkContext._ensure_initialized(gateway=gateway)
        from pyspark import SparkConf

        conf = SparkConf()
        _configure(conf)
        builder: Any = SparkSession.builder
        interrupt = signal.getsignal(signal.SIGINT)
        spark = builder.config(conf=conf).getOrCreate()
        if threading.current_thread() is threading.main_thread():
            # PySpark's own handler calls the JVM on the connection that the interrupted call is still using.
            signal.signal(signal.SIGINT, interrupt)
    except Exception as problem:
        sentence = f"Spark did not start: {_reason(problem, log)}"  # asked for before the JVM is gone: it holds the text
        if jvm is not None:
            jvm.kill()
            SparkContext._gateway = SparkContext._jvm = None
        raise SparkFailed(sentence) from None
    interrupts.check()
    return Session(spark, jvm, log, _send_packages(spark), scratch)


@contextlib.contextmanager
def _ended_unless_it_starts(launcher: Any) -> Iterator[None]:
    """End the JVM if its start is interrupted: PySpark, waiting for its port, would leave it running."""
    started: list[subprocess.Popen[bytes]] = []
    popen = launcher.Popen

    def remembered(*words: Any, **settings: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*words, **settings))
        return started[-1]

    launcher.Popen = remembered
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
        raise
    finally:
        launcher.Popen = popen


def _prepare_process() -> None:
    """Variables of this process that PySpark, its JVM and numba go by. A foreign Spark's would mix two releases."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    for name in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_DRIVER_PYTHON", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        os.environ.pop(name, None)
    # The JVM looks for data sources with the driver's Python: else the first python3 on the PATH, whatever that is.
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = environment.java_runtime().home
    own = str(environment.ROOT)  # for the workers on this machine, also where pytest or a notebook started this process
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path != own]
    os.environ["PYTHONPATH"] = os.pathsep.join([own, *paths])
    os.environ["NUMBA_CACHE_DIR"] = numba_cache()


def _submit_words(spark_words: Sequence[str], java_options: Sequence[str], scratch: str) -> list[str]:
    """What Spark's launcher gets: settings that the JVM needs at its start. `_configure` sets all others.

    scratch: the folder for the JVM's temporary files, and for Spark's own by default.
    """
    jvm = [*QUICK_START, f"-Djava.io.tmpdir={scratch}", *java_options]
    if not any(option.startswith("-XX:ArchiveClassesAtExit") for option in java_options):
        if archive := environment.class_archive(environment.java_runtime(), make=False):
            jvm.append(f"-XX:SharedArchiveFile={archive}")
    words = ["--conf", f"spark.driver.defaultJavaOptions={' '.join(map(_java_quoted, jvm))}"]
    own_path = parser.spark_setting(spark_words, "spark.driver.extraClassPath", "--driver-class-path")
    class_path = [*environment.jars(), *([own_path] if own_path else [])]
    rest = list(spark_words)
    if class_path:
        rest += ["--driver-class-path", os.pathsep.join(class_path)]
    return [*words, *rest, "pyspark-shell"]


def _java_quoted(option: str) -> str:
    """One option as Spark's launcher splits a line of them: its quotes are double ones, with backslashes."""
    if not any(c in option for c in " \"'\\"):
        return option
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _configure(conf: SparkConf) -> None:
    """Complete the settings that Spark has read from options, files and its own defaults."""
    for key, value in FIXED.items():
        conf.set(key, value)
    master = conf.get("spark.master", "local[*]") or "local[*]"
    local = master == "local" or master.startswith(("local[", "local-cluster["))
    for key, value in {**DEFAULTS, **(LOCAL_DEFAULTS if local else {})}.items():
        conf.setIfMissing(key, value)
    if conf.get("spark.app.name") == "pyspark-shell":  # the launcher's own word for a driver that it did not start
        conf.set("spark.app.name", DEFAULTS["spark.app.name"])
    if found := _LOCAL.fullmatch(master):  # else a task whose worker is lost is not tried again on this machine
        conf.set("spark.master", f"local[{found[1] or 1},{conf.get('spark.task.maxFailures', _TASK_FAILURES)}]")
    extensions = [name for name in (conf.get("spark.sql.extensions", "") or "").split(",") if name]
    if _DELTA not in extensions:
        conf.set("spark.sql.extensions", ",".join([*extensions, _DELTA]))
    os.environ["PYSPARK_PYTHON"] = (
        sys.executable if local else conf.get("spark.pyspark.python", "") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    )
    if not _one_process(master) and "PYSPARK_GATEWAY_PORT" not in os.environ:
        # Executors elsewhere have Spark's jars but not Delta's.
        own = [jar for jar in (conf.get("spark.jars", "") or "").split(",") if jar]
        conf.set("spark.jars", ",".join([*own, *environment.jars()]))
    if local:
        # Hadoop has a umask of its own, 022: the tables' logs would be open where the files beside them are not.
        conf.setIfMissing("spark.hadoop.fs.permissions.umask-mode", f"{_umask():03o}")
        conf.setIfMissing("spark.executor.defaultJavaOptions", " ".join(QUICK_START))
        # Else any catalogue call makes a folder where the command is typed.
        conf.setIfMissing("spark.sql.warehouse.dir", (environment.state() / "warehouse").as_uri())
    if not _one_process(master):
        # For modules in a zip, numba keeps what it compiles below this, by the folder that the zip lies in: each run's own.
        conf.setIfMissing("spark.executorEnv.XDG_CACHE_HOME", "./cache")


def _umask() -> int:
    """This process's umask, which can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _one_process(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _send_packages(spark: SparkSession) -> tempfile.TemporaryDirectory[str] | None:
    """Give executors elsewhere the three packages; the folder that must last as long as executors may come and ask.

    In cluster deploy mode they were submitted with the driver.
    """
    if _one_process(str(spark.sparkContext.master)) or "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    from jobs.environment import packaging

    folder = tempfile.TemporaryDirectory(prefix="store-audit-")
    spark.sparkContext.addPyFile(packaging.zip_packages(folder.name))
    return folder


def _reason(problem: Exception, log: IO[bytes] | None) -> str:
    """The most useful line of a failed start: Spark's logged error, the Java exception, or the JVM's own first words."""
    said = [line.strip() for line in _tail(log).splitlines() if line.strip()]
    logged = [line.partition(" ERROR ")[2] for line in said if " ERROR " in line]
    thrown = [line.lstrip(": ") for line in str(problem).splitlines() if line.strip()]
    if getattr(problem, "java_exception", None) is not None:  # its first line names only the call
        return ([line for line in logged if "Reason:" in line] or thrown[1:] or logged or thrown)[0][:500]
    quiet = ("WARNING:", "Using Spark's", "at ", "...", "Usage:", "Options:")
    said = [line for line in said if not line.startswith(quiet) and " WARN " not in line]
    return "; ".join((logged or said or thrown or [type(problem).__name__])[:2])[:500]


def _tail(log: IO[bytes] | None, size: int = 20_000) -> str:
    if log is None:
        return ""
    with contextlib.suppress(OSError, ValueError):
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - size))
        return log.read().decode("utf-8", "replace")
    return ""

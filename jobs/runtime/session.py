"""The only builder of a Spark context and session, for every master. The code is the same on a laptop and on a cluster.

On this machine the driver is this process and starts its JVM itself (`jobs.runtime.jvm`). In cluster deploy mode Spark has
started both already. What a user sets by Spark's options wins over everything here, but for what results depend on.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from jobs import installation
from jobs.installation import module_name
from jobs.runtime import cluster_wait, interrupts
from jobs.runtime import setup as environment
from jobs.runtime.faults import ending, is_sparks, reason
from jobs.runtime.jvm import QUICK_START, Jvm, SparkFailed, is_local, spark_home, sparks_own
from jobs.runtime.source_notes import Listener
from store_io.source import storage_options
from store_io.source.storage_options import HADOOP_FILES, hadoop_folder

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession


# Results depend on these: they hold whatever a user sets.
FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
DEFAULTS = {
    "spark.app.name": "store-audit",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # jobs.tasks.progress draws our own
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",  # else a task per file lists a large store's segments
    "spark.databricks.delta.snapshotPartitions": "2",  # Delta reads its log in 50 partitions by default
}
_PARTITIONS = "spark.sql.shuffle.partitions"
COMMANDS_DEFAULTS = {
    _PARTITIONS: "2",  # only summaries are ever shuffled
    "spark.sql.adaptive.enabled": "false",  # plans over a few small rows: nothing to adapt
}
PEOPLES_DEFAULTS = {
    # Joins and shuffles of messages: Spark joins small partitions, and broadcasts what turns out to be small. On a cluster it
    # begins with its own 200 partitions, on one machine with as many as it has cores.
    "spark.sql.adaptive.enabled": "true",
}
LOCAL_DEFAULTS = {
    # The name of a machine that moves between networks may lead nowhere.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# If tasks run within the driver's JVM and its workers. No other user of this machine is answered; Spark makes the secret itself.
OWN_JVM_DEFAULTS = {
    "spark.authenticate": "true",
    # Not elsewhere: executors start a daemon before the packages are sent to them.
    "spark.python.daemon.module": module_name("jobs.runtime.python_workers"),
    "spark.python.use.daemon": "true",
}
_TYPES = {".py", ".html", ".css", ".js", ".java"}  # modules, and what pages and tables are made from
_LOST = {"Py4JNetworkError", "Py4JError"}  # the connection to the JVM was
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LOCAL = re.compile(r"local(?:\[([0-9]+|\*)\])?")
_TASK_FAILURES = "4"  # Spark's own default on clusters
_DELTA = "io.delta.sql.DeltaSparkSessionExtension"
_NEEDED = (
    *("dfs.ha.namenodes.", "dfs.namenode.rpc-address.", "dfs.client.", "fs.viewfs.mounttable."),
    *("dfs.data.transfer.protection", "hadoop.security.authentication"),
)


class Session:
    """A started Spark: `.context`, `.spark` and, when done, `.stop()`. Use as a context manager."""

    def __init__(
        self,
        context: SparkContext,
        jvm: Jvm,
        sent: tempfile.TemporaryDirectory[str] | None,
        watch: cluster_wait.ClusterWatch | None = None,
    ):
        self.context = context
        self._jvm = jvm
        self._sent = sent
        self._watch = watch
        self._listener: Listener | None = None

    @cached_property
    def spark(self) -> SparkSession:
        """Return Spark SQL. It takes a second to begin: what needs only tasks does without."""
        from pyspark.sql import SparkSession

        builder: Any = SparkSession.builder
        with _own_interrupts():
            session: SparkSession = builder.getOrCreate()
        if self._jvm.notes_place:
            self._listener = Listener(self._jvm.notes_place)
        return session

    def stop(self, wait: bool = False) -> None:
        """End Spark and its JVM. wait: let the JVM end by itself, and until then."""
        context: Any = self.context
        application, at_once = "", True
        self._expect_the_end()
        try:
            application = str(context.applicationId)
            at_once = is_local(str(context.master)) and not _keeps_files_elsewhere(context) and not wait
            if at_once:
                context._jsc.stop()  # all that there is to end: Python's side would wait half a second for its own thread
            else:
                context.stop()
        except Exception:  # the JVM has crashed, or an interrupt has left the connection to it in the middle of a call
            at_once = True
        if self._jvm.process is not None:
            _forget(context)  # as long as the JVM hears it: py4j logs pages about what it cannot send
        self._close_listener()
        self._jvm.end(at_once, wait)
        if self._sent is not None:
            self._sent.cleanup()
        if application and str(context.master).startswith(
            "local-cluster"
        ):  # its workers leave what they fetched in Spark's own folder
            shutil.rmtree(Path(spark_home()) / "work" / application, ignore_errors=True)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: object) -> None:
        # Said before the JVM is gone: it holds the text.
        failed = SparkFailed(f"Spark failed: {self._why(problem)}") if problem is not None and is_sparks(problem) else None
        if kind is not None and not issubclass(kind, Exception):
            self._expect_the_end()
            self._close_listener()
            self._jvm.end()  # interrupted within a call to the JVM: it cannot be asked to stop
            _forget(self.context)
        else:
            self.stop()
        if failed is not None:
            raise failed from problem

    def _close_listener(self) -> None:
        """Close the listener before the JVM's folder goes: its socket lies there."""
        if self._listener is not None:
            self._listener.close()

    def _expect_the_end(self) -> None:
        """Suppress the traceback of the thread that takes tasks' counts: it loses its connection when the JVM ends."""
        if self._watch is not None:
            self._watch.close()
        server: Any = self.context._accumulatorServer
        server.handle_error = lambda *_: None

    def _why(self, problem: BaseException) -> str:
        if self._jvm.process is not None and type(problem).__name__ in _LOST:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return f"its JVM has ended in the middle ({ending(self._jvm.process.wait(5))}); is memory short?"
        if "stopped SparkContext" in (why := reason(problem)) and (logged := self._jvm.logged()):
            return f"the cluster has ended this application: {logged[0][:500]}"
        if "Python worker exited unexpectedly" in why:
            return "its Python workers were lost again and again; is memory short?"
        return why


def start(
    spark_words: Sequence[str] = (), java_options: Sequence[str] = (), defaults: Mapping[str, str] = PEOPLES_DEFAULTS
) -> Session:
    """Start Spark for what people ask, with these of Spark's own options (as `jobs.cli.options.parse` sorted them out).

    java_options: more of the JVM's own, for this driver. defaults: as `on` has them.
    Raises SparkFailed; SetupFailed if there is no Java.
    """
    return on(Jvm(spark_words, java_options), defaults)


def on(jvm: Jvm, defaults: Mapping[str, str] = COMMANDS_DEFAULTS, progress_json: bool = False) -> Session:
    """Start Spark in a JVM that is starting; the JVM is ended if that fails. Raises SparkFailed.

    defaults: settings, unless a user sets them, beside those of every session.
    progress_json: the reason for which a cluster keeps it waiting is said as a JSON object.
    """
    watch: cluster_wait.ClusterWatch | None = None
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.logger import PySparkLogger

        for name in _QUERY_LOGGERS:  # what they log is raised as well: a page of JSON
            PySparkLogger.getLogger(name).disabled = True
        gateway = jvm.connect()
    except BaseException:
        jvm.end()
        raise
    try:
        SparkContext._ensure_initialized(gateway=gateway)
        conf = SparkConf()
        _configure(conf, jvm.sockets_place, defaults)
        if not is_local(master := conf.get("spark.master") or ""):
            watch = cluster_wait.ClusterWatch(master, cluster_wait.say_as_json if progress_json else cluster_wait.say)
        with _own_interrupts():
            context = SparkContext.getOrCreate(conf)
        if is_local(master) and not conf.contains(_PARTITIONS):  # the JVM counts the cores of local[*]
            context._jsc.sc().conf().set(_PARTITIONS, str(context.defaultParallelism))
        interrupts.check()
        if not _takes_over(conf):
            context.environment.update(storage_options.for_workers())
        if watch is not None:
            watch.started(context)
            # For Python workers, and no settings: pages and logs of Spark show those.
            context.environment.update(storage_options.for_tasks(hadoop_settings()))
        _look_for_garbage_rarely()
        return Session(context, jvm, _send_packages(context), watch)
    except BaseException as problem:
        # Asked for before the JVM is gone: it holds the text.
        failed = SparkFailed(f"Spark did not start: {_reason(problem, jvm)}") if isinstance(problem, Exception) else None
        if watch is not None:
            watch.close()
        jvm.end()
        _forget()
        raise failed or problem from None


def _look_for_garbage_rarely() -> None:
    """Have Python's garbage collector leave alone what is in memory now, and begin less often.

    In a store with very many queues some hundred at a time are opened and let go, again and again: these are most objects. Nearly
    none of them is a cycle, which is all that the collector is for. It took a quarter of the driver's time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handler of ctrl-C: PySpark's own calls the JVM on the connection that the interrupted call is still using."""
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)


def _forget(context: Any = None) -> None:
    """Have PySpark forget its JVM, so that a later start in this process begins anew."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if (gateway := SparkContext._gateway) is not None:
        with contextlib.suppress(Exception):  # a connection that an interrupt left in the middle of a call
            gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    if (server := getattr(context, "_accumulatorServer", None)) is not None:
        threading.Thread(target=server.shutdown, daemon=True).start()  # it waits up to half a second for its own thread


def _keeps_files_elsewhere(context: SparkContext) -> bool:
    """Say whether Spark has temporary files outside of the JVM's own folder, which a JVM that is killed would leave."""
    return bool(os.environ.get("SPARK_LOCAL_DIRS") or context._conf.get("spark.local.dir", ""))


def _configure(conf: SparkConf, sockets: str, defaults: Mapping[str, str]) -> None:
    """Complete the settings that Spark has read from options, files and its own defaults.

    defaults: of this kind of session.
    sockets: the folder of Unix sockets between Python and the JVM; empty: they use ports, which is Spark's default.
    """
    for key, value in FIXED.items():
        conf.set(key, value)
    master = conf.get("spark.master", "local[*]") or "local[*]"
    local = master == "local" or master.startswith(("local[", "local-cluster["))
    own_jvm = OWN_JVM_DEFAULTS if is_local(master) else {}
    for key, value in {**DEFAULTS, **defaults, **(LOCAL_DEFAULTS if local else {}), **own_jvm}.items():
        conf.setIfMissing(key, value)
    if own_jvm and _is_true(conf, "spark.authenticate"):  # Spark does not start with this setting alone
        conf.setIfMissing("spark.network.crypto.enabled", "true")
    if sockets:  # a port takes whoever connects first, and what is sent then is lost
        conf.setIfMissing("spark.python.unix.domain.socket.enabled", "true")
        conf.setIfMissing("spark.python.unix.domain.socket.dir", sockets)
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
    if not is_local(master) and not sparks_own():
        # Executors elsewhere have Spark's jars but not Delta's.
        own = [jar for jar in (conf.get("spark.jars", "") or "").split(",") if jar]
        conf.set("spark.jars", ",".join([*own, *environment.jars()]))
    if local:
        # Hadoop has a umask of its own, 022: the tables' logs would be open where the files beside them are not.
        conf.setIfMissing("spark.hadoop.fs.permissions.umask-mode", f"{_umask():03o}")
        conf.setIfMissing("spark.executor.defaultJavaOptions", " ".join(QUICK_START))
        # Else any catalogue call makes a folder where the command is typed.
        conf.setIfMissing("spark.sql.warehouse.dir", (environment.state() / "warehouse").as_uri())
    if not is_local(master):
        # For modules in a zip, numba keeps what it compiles below this, by the folder that the zip lies in: each run's own.
        conf.setIfMissing("spark.executorEnv.XDG_CACHE_HOME", "./cache")


def _is_true(conf: SparkConf, key: str) -> bool:
    return (conf.get(key, "") or "").strip().lower() == "true"


def _takes_over(conf: SparkConf) -> bool:
    """Say whether Python workers get the login of S3 back without our help. They do from our daemon, or as on a cluster."""
    if not is_local(conf.get("spark.master") or ""):
        return True
    ours = conf.get("spark.python.daemon.module") == OWN_JVM_DEFAULTS["spark.python.daemon.module"]
    return ours and _is_true(conf, "spark.python.use.daemon")


def _umask() -> int:
    """Return this process's umask, which can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _send_packages(context: SparkContext) -> tempfile.TemporaryDirectory[str] | None:
    """Give executors elsewhere the three packages; the folder that must last as long as executors may come and ask.

    In cluster deploy mode they were submitted with the driver.
    """
    if is_local(str(context.master)) or sparks_own():
        return None
    folder = tempfile.TemporaryDirectory(prefix="store-audit-")
    context.addPyFile(zip_packages(folder.name))
    return folder


def zip_packages(folder: str | os.PathLike[str]) -> str:
    """Write the three packages to a zip in that folder, for --py-files; the same sources give the same bytes."""
    target = Path(folder) / "store_audit_packages.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in installation.PACKAGES:
            files = (installation.IMPORTED_FROM / package).rglob("*")
            for path in sorted(path for path in files if path.suffix in _TYPES):
                entry = zipfile.ZipInfo(path.relative_to(installation.IMPORTED_FROM).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return str(target)


def _reason(problem: Exception, jvm: Jvm) -> str:
    """Return the most useful line of a failed start.

    It is Spark's logged error, the Java exception, or the JVM's own first words.
    """
    thrown = [line.lstrip(": ") for line in str(problem).splitlines() if line.strip()]
    if getattr(problem, "java_exception", None) is not None:  # its first line names only the call
        logged = jvm.logged()
        return ([line for line in logged if "Reason:" in line] or thrown[1:] or logged or thrown)[0][:500]
    return jvm.said("; ".join((thrown or [type(problem).__name__])[:2])[:500])


def hadoop_settings() -> dict[str, str]:
    """Return the settings that hdfs-native asks for.

    A file that cannot be read is left out: whoever opens a store names its fault.
    """
    found: dict[str, str] = {}
    if place := hadoop_folder():
        for name in HADOOP_FILES:
            with contextlib.suppress(OSError, ElementTree.ParseError):
                for one in ElementTree.fromstring(Path(place, name).read_bytes()).iter("property"):
                    key, value = one.findtext("name", "").strip(), one.findtext("value", "").strip()
                    if key.startswith(_NEEDED):
                        found[key] = value
    return found

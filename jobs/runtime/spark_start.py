"""Spark for one command, started when it is first asked for, or in steps beside other work. Also what does without Spark.

Nothing of Spark is loaded before a command wants Spark: a question that is answered in this process shall begin at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobs.runtime.jvm import Jvm
    from jobs.runtime.session import Session

SPARK_BYTES = 8 << 30  # so much is read in one process in the time that Spark needs to start


def worth_spark(size: int) -> bool:
    """Say whether so many bytes to read are worth a Spark session that nobody asked for."""
    return size > SPARK_BYTES


class LazySpark:
    """Spark, started when its session is first asked for. Use as a context manager, which ends Spark.

    words: Spark's own options of the command line.
    progress_json: the reason for which a cluster keeps it waiting is said as a JSON object.
    """

    def __init__(self, words: Sequence[str] = (), progress_json: bool = False):
        self.words, self._progress_json = words, progress_json
        self._stack = ExitStack()
        self._jvm: Jvm | None = None
        self._session: Session | None = None

    def wanted(self, size: int) -> bool:
        """Say whether so many bytes are worth a Spark session, or the command line asks for one."""
        return bool(self.words) or worth_spark(size)

    def begin(self, load: Callable[[], object]) -> None:
        """Start the JVM now. Meanwhile load what tasks need: Python workers are forked from this process once it is loaded.

        Raises SparkFailed; SetupFailed if there is no Java.
        """
        from jobs.runtime.jvm import Jvm

        self._jvm = Jvm(self.words)
        self._stack.callback(self._jvm.end)
        load()
        from jobs.runtime import session  # noqa: F401  before the fork
        from jobs.runtime.python_workers import WarmWorkers

        self._stack.enter_context(closing(WarmWorkers(self._jvm.workers_place)))

    @property
    def session(self) -> Session:
        """Return the session. Raises SparkFailed; SetupFailed if there is no Java."""
        if self._session is None:
            from jobs.runtime import session

            if self._jvm is None:
                started = session.start(self.words, defaults=session.COMMANDS_DEFAULTS)
            else:
                started = session.on(self._jvm, progress_json=self._progress_json)
            self._session = self._stack.enter_context(started)
        return self._session

    def __enter__(self) -> LazySpark:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, problem, trace)

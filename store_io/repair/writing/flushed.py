"""Notes the parts of a new store that are on the disk already, so that each file is flushed once after it was written last."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any


class Flushed:
    """Paths that nothing was written to since they were flushed. Safe among threads.

    Only this process's writes are seen. So once the writer was packed for another process, nothing counts as flushed any more.
    """

    def __init__(self, alone: bool = True) -> None:
        self._lock = threading.Lock()
        self._writes: Counter[str] = Counter()
        self._open: Counter[str] = Counter()
        self._flushed: dict[str, int] = {}
        self._alone = alone

    def __reduce__(self) -> Any:
        self._alone = False
        return Flushed, (False,)

    def wrote(self, path: str) -> None:
        """Note that the file, or the names in the folder, are not what they were."""
        with self._lock:
            self._writes[path] += 1

    def forget(self, folder: str) -> None:
        """Note that a folder of that path is gone, or another one, with all that was in it."""
        below = folder.rstrip("/") + "/"
        with self._lock:
            for path in {*self._writes, *self._flushed}:
                if path == folder or path.startswith(below):
                    self._writes[path] += 1

    def opened(self, path: str) -> None:
        """Note that the file is open to be written: until it is closed it does not count as flushed."""
        with self._lock:
            self._open[path] += 1

    def closed(self, path: str) -> None:
        """Note the end of one such opening."""
        with self._lock:
            self._open[path] -= 1
            self._writes[path] += 1

    def state(self, path: str) -> int | None:
        """Return the value that `done` wants to know of the path before it is flushed. None if it is on the disk as it is."""
        with self._lock:
            writes = self._writes[path]
            return None if self._alone and self._flushed.get(path) == writes and not self._open[path] else writes

    def done(self, path: str, state: int) -> None:
        """Note that it was flushed after `state` was taken."""
        with self._lock:
            if not self._open[path]:
                self._flushed[path] = state

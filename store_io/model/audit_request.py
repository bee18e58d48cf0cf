"""The request for an audit: the copy, and how much of it to read."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.first_day import StartMoment
from schemas.rows import NAMED, EarlierRun, EarlierSegment
from store_io.log.records.segment_walk import FAST
from store_io.source.byte_source import StoreLocation


@dataclass(frozen=True)
class AuditRequest:
    """The request for one audit.

    broker_conf: the properties file's text.
    window_bytes, decoder: for tests and measurements.
    """

    name: str
    location: StoreLocation
    release: str
    broker_conf: str | None = None
    replica_group: str = ""
    store: int = 0
    window_bytes: int = 4 << 20
    decoder: str = FAST
    level: str = "full"  # or "quick": only what the broker would read
    not_after: float = 0  # seconds since 1970 from which no further segment is started; 0: never
    earlier: EarlierRun | None = None
    release_from: str = NAMED  # as in Outcome
    reuse: bool = False  # what the earlier run, or one before it, has verified is not read again
    releases: tuple[str, ...] = ()  # to compare with each other; () none: the one above alone is answered for
    changed: tuple[str, bool] | None = None  # a setting that has another value than the store's own
    digests: bool = True  # of segments, for the plan; without them each byte is summed once less
    start: StartMoment | None = None  # of the broker; None: nothing is said of its first day
    living: bool = False  # a broker runs on it: changes while it is read are no gap, and its abort file shows no crash
    perhaps_emptied: bool = False  # a folder that nothing shows to be a store is read too: `StoreAudit.settle` says what it is

    @property
    def whole(self) -> bool:
        """Say whether everything is to be read, whatever it takes."""
        return self.level == "full" and not self.not_after and self.earlier is None

    @property
    def quick(self) -> bool:
        """Say whether only what the broker would read is to be read."""
        return self.level == "quick"

    def known(self, path: str) -> EarlierSegment | None:
        """Return the earlier run's facts on this segment."""
        return self.earlier.segments.get(path) if self.earlier is not None else None

    def was_damaged(self, path: str) -> bool:
        """Say whether the earlier run found damage in this segment."""
        known = self.known(path)
        return known is not None and known.damaged

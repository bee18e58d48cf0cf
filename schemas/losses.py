"""What a start loses of one copy, what the copy lacks already, and what an audit of it left unread: values, in no language.

Times are ms since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER_DELIVERED = ("cut", "never", "after_end", "unreached", "no_unit")  # fields of `TimerFates`


@dataclass(frozen=True, slots=True)
class NotRead:
    """How much an audit left out on purpose.

    reused: not read again, as it is unchanged since run `since`, or an earlier one, verified it. since: None without any.
    """

    segments: int = 0
    segment_bytes: int = 0
    queue_files: int = 0
    queue_bytes: int = 0
    index_files: int = 0
    index_bytes: int = 0
    reused_segments: int = 0
    reused_bytes: int = 0
    since: str | None = None


ALL_READ = NotRead()


@dataclass(frozen=True, slots=True)
class Missing:
    """Messages that the copy shows and does not hold. at_least: there may be more."""

    messages: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class TopicLoss:
    """The messages of one topic that a start loses."""

    topic: str
    messages: int
    first_store_time: int
    last_store_time: int


@dataclass(frozen=True, slots=True)
class GroupBeyond:
    """A consumer group's offset beyond the end that its queue has after a start."""

    group: str
    topic: str
    queue_id: int
    offset: int
    new_max: int

    @property
    def beyond(self) -> int:
        """Return how many messages the group would skip."""
        return self.offset - self.new_max


@dataclass(frozen=True, slots=True)
class LevelBeyond:
    """A delay level's offset beyond the end that its queue has after a start."""

    level: int
    offset: int
    new_max: int


@dataclass(frozen=True, slots=True)
class LossOfStart:
    """The messages that a start loses, by topic, and offsets in config/ that lie beyond the end of their queue then."""

    messages: int = 0
    bytes: int = 0
    by_topic: tuple[TopicLoss, ...] = ()
    groups: tuple[GroupBeyond, ...] = ()
    delay_levels: tuple[LevelBeyond, ...] = ()


NOTHING_LOST = LossOfStart()


@dataclass(frozen=True, slots=True)
class TimerCount:
    """How many timer messages, and between which delivery times."""

    messages: int = 0
    first_time: int = 0
    last_time: int = 0

    def __add__(self, other: TimerCount) -> TimerCount:
        if not self.messages or not other.messages:
            return self if self.messages else other
        first, last = min(self.first_time, other.first_time), max(self.last_time, other.last_time)
        return TimerCount(self.messages + other.messages, first, last)


@dataclass(frozen=True, slots=True)
class TimerFates:
    """The counts of timer messages by what happens to them after a start.

    waiting: a start will deliver them at their time, or at once.
    again: delivered already, and a start does it once more.
    cut: due, and their delivered copy is beyond the cut.
    never: due, or taken out of the queue, without any copy.
    after_end: like never, but their time came after the copy's last message, so that their copies may not have been copied.
    unreached: their time is still to come, but no slot leads to their units.
    no_unit: taken out of the queue, due after the copy's last message, and their unit is not in the timer log.

    All five from cut on stay in the log and are never delivered (again).
    """

    waiting: TimerCount = field(default_factory=TimerCount)
    again: TimerCount = field(default_factory=TimerCount)
    cut: TimerCount = field(default_factory=TimerCount)
    never: TimerCount = field(default_factory=TimerCount)
    after_end: TimerCount = field(default_factory=TimerCount)
    unreached: TimerCount = field(default_factory=TimerCount)
    no_unit: TimerCount = field(default_factory=TimerCount)

    @property
    def lost(self) -> TimerCount:
        """Return all that will never be delivered."""
        return sum((getattr(self, name) for name in NEVER_DELIVERED), TimerCount())

    def __add__(self, other: TimerFates) -> TimerFates:
        return TimerFates(
            self.waiting + other.waiting,
            self.again + other.again,
            self.cut + other.cut,
            self.never + other.never,
            self.after_end + other.after_end,
            self.unreached + other.unreached,
            self.no_unit + other.no_unit,
        )


@dataclass(frozen=True, slots=True)
class TimersOfCopy:
    """The timer store of a copy.

    units: of the timer log; stale: those of them that lead to where a start ends the CommitLog, or further.
    fates: what becomes of the messages; None if that was not judged.
    """

    units: int
    stale: int
    fates: TimerFates | None = None

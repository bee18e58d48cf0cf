"""What a started broker does to a store by itself in its first day: values, in no language. `store_io.first_day` decides them.

Nothing else of an audit depends on the clock, or on the disk on which the store will lie.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StartMoment:
    """When, and on which disk, a broker is started on the copy.

    at_ms: since 1970, UTC.
    timezone: of the broker's JVM, an IANA name; it decides which hour is one of deleteWhen.
    disk_used: percent of the disk that is used, with the store on it; None if it is not known.
    disk_size: bytes of that disk; None if it is not known, and then nothing is known to become free by deleting.
    decided: somebody named the moment, or a rescue runs: then what is lost by this start is a loss.
    after_stop: it is an hour after the store's last message; at_ms is 0 until the copy was read.
    now_ms: the time at which the command began: a repair for this start is made then; 0 if nobody asks for one.
    copy_used: percent of that disk that the damaged copy takes; None if it lies elsewhere, or if that is not known.
    """

    at_ms: int
    timezone: str = "UTC"
    disk_used: float | None = None
    disk_size: int | None = None
    decided: bool = False
    after_stop: bool = False
    now_ms: int = 0
    copy_used: float | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """Messages of a queue that retention takes before a group has consumed them."""

    group: str
    topic: str
    queue_id: int
    messages: int


@dataclass(frozen=True, slots=True)
class Retention:
    """Segments that the broker deletes by itself: paths below the store, in the order in which they go.

    at_once: within minutes of the start. in_delete_when: further ones in the next hour of deleteWhen.
    if_disk_full: further ones at once, if the disk is over the ratio that forces deleting.
    messages: valid ones in at_once and in_delete_when; timers_lost: timer messages that go before they are due; None if that
        is not known.
    unread: the largest ones; unread_more: how many others there are. None: a segment was not read in this run, or never.
    next_hour_ms: when the next hour of deleteWhen begins, after the start; None if none comes.
    forced: the disk is so full that ages do not count.
    """

    reserved_hours: int
    delete_when: str
    at_once: tuple[str, ...] = ()
    in_delete_when: tuple[str, ...] = ()
    if_disk_full: tuple[str, ...] = ()
    messages: int | None = 0
    timers_lost: int | None = None
    unread: tuple[Unread, ...] = ()
    unread_more: int | None = 0
    next_hour_ms: int | None = None
    forced: bool = False


@dataclass(frozen=True, slots=True)
class TimersOfDay:
    """Messages of rmq_sys_wheel_timer that wait, checkpoints of pop among them, by the clock alone.

    never: never delivered. uncertain: whether they are delivered is a race. at_once, later: delivered then.
    twice: delivered before, and once more. start_before_ms: the moment before which a start delivers all; None if there is none.
    """

    never: int = 0
    uncertain: int = 0
    at_once: int = 0
    later: int = 0
    twice: int = 0
    start_before_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DelaysOfDay:
    """Messages of delay levels. stuck_levels: those at which the broker tries one message without end."""

    at_once: int = 0
    later: int = 0
    left_out: int = 0
    stuck_levels: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionsOfDay:
    """Half messages. moved_at_first_check: those that are never asked for again. open: the others that are not decided."""

    moved_at_first_check: int = 0
    open: int = 0


@dataclass(frozen=True, slots=True)
class FirstDay:
    """What the broker does by itself after a start at this moment.

    A part is None if the release has no such service, or if the audit is incomplete there.
    registers: None if nothing says it; False: the broker stays fenced, or ends.
    settings: those of broker.conf that decide nothing of a start, but of its day, if they are not the defaults.
    """

    moment: StartMoment
    retention: Retention | None = None
    timers: TimersOfDay | None = None
    delays: DelaysOfDay | None = None
    transactions: TransactionsOfDay | None = None
    registers: bool | None = None
    settings: tuple[tuple[str, bool | int | str], ...] = ()

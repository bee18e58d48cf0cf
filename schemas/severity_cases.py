"""Circumstances in which a finding weighs otherwise than its code's row says. A check names the circumstance, not a severity."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from schemas.finding_codes import LOSS, NOTE, REBUILDABLE, Code


class Case(Enum):
    """A circumstance that a check has seen beside the disagreement."""

    # A broker leaves this, or loses nothing by it.
    AFTER_CRASH = auto()  # an unclean exit leaves it
    NOT_WRITTEN_YET = auto()  # it was switched on or made later, or retention removed it
    START_MENDS = auto()  # a start of the release puts it right
    START_CUTS = auto()  # it lies beyond where a start ends the log
    NOT_ASKED = auto()  # the broker asks no producer about such a transaction, or no more
    DONE_ALREADY = auto()  # the transaction is done
    LOG_LACKS = auto()  # the log lacks the message that it leads to
    HEADER_CHANGED = auto()  # the header of the message is damaged, not the entry
    SETTING_CHANGED = auto()  # a setting was another one when it was written
    NO_MESSAGE_LOST = auto()  # a start loses no message of the queue
    NEW_STORE = auto()  # the store holds neither messages nor tables
    SENT_BY_MASTER = auto()  # a master sends it again, or the broker's own settings may be others
    NOT_TAKEN = auto()  # a start takes another form of it, or does not read it
    TAKEN_AS_IT_IS = auto()  # a start takes it although no broker writes it so
    MAY_BE_DELETED = auto()  # nothing shows that it was lost: somebody may have deleted it
    NO_SUCH_QUEUE = auto()  # no broker finds a queue of that name
    OTHER_KIND_ALONE = auto()  # of a double write, the kind that is not read has more
    OTHER_STORE = auto()  # nothing shows that both copies are of one broker
    BEGINS_AGAIN = auto()  # the queue began anew
    BETWEEN_FLUSHES = auto()  # two files are flushed at different moments
    FIRST_SLOT = auto()  # the first slot, which no release reads
    NOBODY_WAITS = auto()  # no message waits for it
    NOT_LOOKED_AT = auto()  # more than is looked at
    COPY_ENDS_BEFORE = auto()  # what would show it may lie in what was not copied
    AFTER_LAST_RECORD = auto()
    KEPT_BY_REPAIR = auto()  # the repair that made this store could not change it
    COPIED_BY_BROKER = auto()  # the broker copied an earlier message with its damage
    # It is graver than the code's row says.
    IN_THE_WAY = auto()  # a broker takes the file for one of its own
    MESSAGES_MISSING = auto()
    AFTER_CLEAN_STOP = auto()  # a broker that stops cleanly does not leave it
    STANDS_STILL = auto()  # new messages are passed over
    SEVERAL_MESSAGES = auto()  # a restart does it to one message alone
    SHOWN = auto()  # something in the copy shows what a start does not hold
    OF_TIMERS = auto()
    AGAINST_THIS_COPY = auto()  # something says that this copy is the wrong one
    UNREADABLE = auto()  # consumers cannot read the message
    NEIGHBOURS_AGREE = auto()
    # It is less grave, and still to be mended.
    IN_ORDER = auto()  # the files come in the right order all the same
    LIVE_COPY = auto()  # the copy was taken from a running broker
    SEVERAL_OFFSETS = auto()  # no single header is at fault
    LOG_HOLDS_IT = auto()


def _all(severity: str, *codes: Code) -> dict[Code, str]:
    return dict.fromkeys(codes, severity)


SEVERITIES_IN: Mapping[Case, Mapping[Code, str]] = {
    Case.AFTER_CRASH: _all(
        NOTE,
        Code.QUEUE_DATABASE_OLDER,
        Code.QUEUE_TWIN_MISSING,
        Code.INDEX_HEADER_WRONG,
        Code.INDEX_ENTRY_BEYOND_END,
        Code.TRANSACTION_ENTRY_WRONG,
        Code.ROCKSDBSTORE_DAMAGED,
        Code.TIMER_UNIT_DAMAGED,
        Code.TIMER_UNIT_BEYOND_END,
        Code.TIMER_CHECKPOINT_WRONG,
        Code.COMPACTED_RECORD_UNLISTED,
        Code.COMPACTED_MESSAGE_MISSING,
    ),
    Case.NOT_WRITTEN_YET: _all(
        NOTE,
        Code.QUEUE_ENTRY_MISSING,
        Code.QUEUE_TWIN_MISSING,
        Code.INDEX_ENTRY_MISSING,
        Code.DELAYED_MESSAGES_AGAIN,
        Code.COMPACTED_MESSAGE_MISSING,
    ),
    Case.START_MENDS: _all(
        NOTE,
        Code.QUEUE_ENTRY_MISSING,
        Code.INDEX_ENTRY_MISSING,
        Code.TRANSACTION_ENTRY_MISSING,
        Code.DELAY_OFFSET_BEYOND_END,
    ),
    Case.START_CUTS: _all(NOTE, Code.TIMER_UNIT_BEYOND_END),
    Case.NOT_ASKED: _all(NOTE, Code.TRANSACTION_ENTRY_MISSING),
    Case.DONE_ALREADY: _all(NOTE, Code.TRANSACTION_ENTRY_WRONG),
    Case.LOG_LACKS: _all(NOTE, Code.INDEX_ENTRY_DANGLING, Code.TRANSACTION_ENTRY_WRONG),
    Case.HEADER_CHANGED: _all(NOTE, Code.INDEX_ENTRY_WRONG),
    Case.SETTING_CHANGED: _all(NOTE, Code.QUEUE_ENTRY_WRONG),
    Case.NO_MESSAGE_LOST: _all(NOTE, Code.CONSUMER_OFFSET_BEYOND_END),
    Case.NEW_STORE: _all(NOTE, Code.CONFIG_TABLE_LOST, Code.CHECKPOINT_MISSING),
    Case.SENT_BY_MASTER: _all(NOTE, Code.CONFIG_TABLE_LOST),
    Case.NOT_TAKEN: _all(NOTE, Code.CONFIG_DAMAGED, Code.OPENED_DATABASE_DAMAGED),
    Case.TAKEN_AS_IT_IS: _all(NOTE, Code.CONFIG_DAMAGED),
    Case.MAY_BE_DELETED: _all(NOTE, Code.TOPIC_NOT_IN_TABLE),
    Case.NO_SUCH_QUEUE: _all(NOTE, Code.QUEUE_ENTRY_MISSING),
    Case.OTHER_KIND_ALONE: _all(NOTE, Code.QUEUE_TWIN_DIFFERS),
    Case.OTHER_STORE: _all(NOTE, Code.COMMITLOG_SHRUNK),
    Case.BEGINS_AGAIN: _all(NOTE, Code.QUEUE_OFFSET_BACK),
    Case.BETWEEN_FLUSHES: _all(NOTE, Code.CHECKPOINT_AHEAD),
    Case.FIRST_SLOT: _all(NOTE, Code.INDEX_ENTRIES_BEYOND_COUNT),
    Case.NOBODY_WAITS: _all(NOTE, Code.TIMER_SLOT_WRONG),
    Case.NOT_LOOKED_AT: _all(NOTE, Code.TIMER_UNIT_WRONG, Code.INDEX_ENTRY_DANGLING, Code.COMPACTED_MESSAGE_MISSING),
    Case.COPY_ENDS_BEFORE: _all(NOTE, Code.TIMER_MESSAGE_LOST),
    Case.AFTER_LAST_RECORD: _all(NOTE, Code.COMPACTED_RECORD_UNLISTED),
    Case.KEPT_BY_REPAIR: _all(NOTE, *Code),
    Case.COPIED_BY_BROKER: _all(NOTE, Code.PROPERTIES_MALFORMED, Code.MESSAGE_HEADER_ODD),
    Case.IN_THE_WAY: _all(REBUILDABLE, Code.FILE_UNRECOGNISED, Code.SEGMENT_EMPTY, Code.QUEUE_FILE_EMPTY),
    Case.MESSAGES_MISSING: _all(REBUILDABLE, Code.QUEUE_OFFSET_GAP),
    Case.AFTER_CLEAN_STOP: {Code.CHECKPOINT_ZERO: REBUILDABLE, Code.COMMITLOG_TORN_TAIL: LOSS},
    Case.STANDS_STILL: _all(REBUILDABLE, Code.TIMER_OFFSET_BEYOND_END),
    Case.SEVERAL_MESSAGES: _all(REBUILDABLE, Code.INDEX_ENTRY_DUPLICATE),
    Case.SHOWN: _all(LOSS, Code.CONFIG_TABLE_LOST, Code.TOPIC_NOT_IN_TABLE),
    Case.OF_TIMERS: _all(LOSS, Code.ROCKSDBSTORE_DAMAGED),
    Case.AGAINST_THIS_COPY: _all(LOSS, Code.REPLICA_DISPUTES),
    Case.UNREADABLE: _all(LOSS, Code.MESSAGE_HEADER_ODD),
    Case.NEIGHBOURS_AGREE: _all(LOSS, Code.STORE_TIME_ODD),
    Case.IN_ORDER: _all(REBUILDABLE, Code.SEGMENT_MISNAMED),
    Case.LIVE_COPY: _all(REBUILDABLE, Code.MESSAGE_LOST, Code.SEGMENT_MISSING),
    Case.SEVERAL_OFFSETS: _all(REBUILDABLE, Code.QUEUE_OFFSET_BACK),
    Case.LOG_HOLDS_IT: _all(REBUILDABLE, Code.COMPACTED_RECORD_DAMAGED),
}


def severity_in(code: Code, case: Case, holds: bool = True) -> str:
    """Return the severity of a finding of this code in this case. "", which is the code's own, if the case does not hold."""
    return SEVERITIES_IN[case][code] if holds else ""

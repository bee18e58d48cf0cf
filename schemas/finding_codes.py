"""The catalogue of findings and of stop reasons. Codes are stable, sentences are not.

A row has all that anybody asks about a finding by its code: severity, what it is about, what cures it, what it means, the next
step. Nothing is decided by how a code is spelled.

A severity says what follows: `note` (by itself it leaves the exit code at 0; most are states that healthy brokers
leave), `rebuildable` (derived data; the CommitLog suffices), `loss` (bytes of the CommitLog are damaged or missing, or a start
would drop messages, or the release would not start at all).
If the evidence says more than the code does, a finding has the severity of a case (`severity_cases`), or a next step of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto

from schemas.advice import Advice, Step

NOTE, REBUILDABLE, LOSS = "note", "rebuildable", "loss"  # the severities


class Code(StrEnum):
    """Every kind of disagreement. A finding has one of these, and each has its row in the catalogue."""

    COMMITLOG_DAMAGED = "commitlog_damaged"
    COMMITLOG_TORN_TAIL = "commitlog_torn_tail"
    COMMITLOG_FOREIGN = "commitlog_foreign"
    COMMITLOG_BRIDGED = "commitlog_bridged"
    MESSAGE_HEALED = "message_healed"
    FILLER_WRONG_SIZE = "filler_wrong_size"
    FILLER_HIDES_MESSAGES = "filler_hides_messages"
    FILLER_NOT_ZERO = "filler_not_zero"
    PROPERTIES_MALFORMED = "properties_malformed"
    MESSAGE_HEADER_ODD = "message_header_odd"
    STORE_HOST_ODD = "store_host_odd"
    PROPERTY_CRC_MISMATCH = "property_crc_mismatch"
    MESSAGE_LOST = "message_lost"
    MESSAGE_DISPUTED = "message_disputed"
    SEGMENT_MISSING = "segment_missing"
    SEGMENT_WRONG_SIZE = "segment_wrong_size"
    SEGMENT_EMPTY = "segment_empty"
    SEGMENT_UNWRITTEN = "segment_unwritten"
    SEGMENT_MISNAMED = "segment_misnamed"
    SEGMENT_TWICE = "segment_twice"
    STORES_MERGED = "stores_merged"
    FILLER_OTHER_SIZE = "filler_other_size"
    COMMITLOG_EMPTY = "commitlog_empty"
    COMMITLOG_EMPTIED = "commitlog_emptied"
    COMMITLOG_SHRUNK = "commitlog_shrunk"
    SEGMENT_CHANGED = "segment_changed"
    QUEUE_OFFSET_GAP = "queue_offset_gap"
    QUEUE_OFFSET_WRONG = "queue_offset_wrong"
    QUEUE_OFFSET_BACK = "queue_offset_back"
    QUEUE_BEGINS_AGAIN = "queue_begins_again"
    STORE_TIME_BACK = "store_time_back"
    STORE_TIME_ODD = "store_time_odd"
    LEDGER_CHAIN_BROKEN = "ledger_chain_broken"
    LEDGER_ENTRIES_MISSING = "ledger_entries_missing"
    LEDGER_ENTRY_TORN = "ledger_entry_torn"
    LEDGER_INDEX_MISSING = "ledger_index_missing"
    LEDGER_INDEX_WRONG_SIZE = "ledger_index_wrong_size"
    LEDGER_UNIT_WRONG = "ledger_unit_wrong"
    LEDGER_TERM_OLD = "ledger_term_old"
    LEDGER_CRASH_CUT = "ledger_crash_cut"
    REPLICA_HOLDS = "replica_holds"
    REPLICA_DISPUTES = "replica_disputes"
    REPLICA_DIVERGED = "replica_diverged"
    COPY_IS_BEHIND = "copy_is_behind"
    MESSAGES_NOT_READ = "messages_not_read"
    IDENTITY_DIFFERS = "identity_differs"
    BROKER_REFUSES = "broker_refuses"
    BROKER_DROPS_MESSAGES = "broker_drops_messages"
    BROKER_SKIPS_MESSAGES = "broker_skips_messages"
    BROKER_HANGS = "broker_hangs"
    QUEUE_ENTRY_MISSING = "queue_entry_missing"
    QUEUE_ENTRY_WRONG = "queue_entry_wrong"
    QUEUE_ENTRY_SHIFTED = "queue_entry_shifted"
    QUEUE_ENTRY_UNEXPECTED = "queue_entry_unexpected"
    QUEUE_ENTRY_TWICE = "queue_entry_twice"
    QUEUE_ENTRY_BEYOND_END = "queue_entry_beyond_end"
    QUEUE_ENTRY_BELOW_MINIMUM = "queue_entry_below_minimum"
    QUEUE_POSITION_ANSWERED = "queue_position_answered"
    QUEUE_PRE_BLANK = "queue_pre_blank"
    QUEUE_ZERO_ENTRY = "queue_zero_entry"
    QUEUE_FILE_UNEXPECTED = "queue_file_unexpected"
    QUEUE_ENTRY_INVALID = "queue_entry_invalid"
    QUEUE_DATABASE_DAMAGED = "queue_database_damaged"
    QUEUE_DATABASE_OLDER = "queue_database_older"
    QUEUE_END_WRONG = "queue_end_wrong"
    QUEUE_END_UNDECIDED = "queue_end_undecided"
    QUEUE_TWIN_MISSING = "queue_twin_missing"
    QUEUE_TWIN_DIFFERS = "queue_twin_differs"
    QUEUE_WITHOUT_FILES = "queue_without_files"
    QUEUE_FILE_MISSING = "queue_file_missing"
    QUEUE_FILE_WRONG_SIZE = "queue_file_wrong_size"
    QUEUE_FILE_EMPTY = "queue_file_empty"
    QUEUE_TOPIC_UNKNOWN = "queue_topic_unknown"
    QUEUE_EXT_DAMAGED = "queue_ext_damaged"
    QUEUE_EXT_DANGLING = "queue_ext_dangling"
    COMPACTED_FILES_DIFFER = "compacted_files_differ"
    COMPACTED_RECORD_DAMAGED = "compacted_record_damaged"
    COMPACTED_RECORD_UNLISTED = "compacted_record_unlisted"
    COMPACTED_ENTRY_WRONG = "compacted_entry_wrong"
    COMPACTED_RECORD_DIFFERS = "compacted_record_differs"
    COMPACTED_MESSAGE_MISSING = "compacted_message_missing"
    COMPACTED_LOG_AHEAD = "compacted_log_ahead"
    COMPACTED_TOPIC_UNSERVED = "compacted_topic_unserved"
    TIERED_MESSAGES = "tiered_messages"
    INDEX_ENTRY_MISSING = "index_entry_missing"
    INDEX_ENTRY_DANGLING = "index_entry_dangling"
    INDEX_ENTRY_WRONG = "index_entry_wrong"
    INDEX_ENTRY_DUPLICATE = "index_entry_duplicate"
    INDEX_ENTRY_BEYOND_END = "index_entry_beyond_end"
    INDEX_RANGE_MISSING = "index_range_missing"
    INDEX_RANGE_UNCONFIRMED = "index_range_unconfirmed"
    INDEX_HEADER_WRONG = "index_header_wrong"
    INDEX_CHAIN_BROKEN = "index_chain_broken"
    INDEX_SLOT_WRONG = "index_slot_wrong"
    INDEX_ENTRIES_BEYOND_COUNT = "index_entries_beyond_count"
    INDEX_FILE_WRONG_SIZE = "index_file_wrong_size"
    CHECKPOINT_MISSING = "checkpoint_missing"
    CHECKPOINT_DAMAGED = "checkpoint_damaged"
    CHECKPOINT_ZERO = "checkpoint_zero"
    CHECKPOINT_BYTES_BEHIND = "checkpoint_bytes_behind"
    INDEX_PART_FLUSHED = "index_part_flushed"
    INDEX_SLOT_OVERCOUNT = "index_slot_overcount"
    CHECKPOINT_SHORT = "checkpoint_short"
    CHECKPOINT_AHEAD = "checkpoint_ahead"
    CHECKPOINT_BEHIND = "checkpoint_behind"
    CHECKPOINT_OFFSET_BEYOND_END = "checkpoint_offset_beyond_end"
    EPOCH_FILE_DAMAGED = "epoch_file_damaged"
    EPOCH_NOT_RISING = "epoch_not_rising"
    EPOCH_BEYOND_END = "epoch_beyond_end"
    EPOCH_NOT_AT_RECORD = "epoch_not_at_record"
    QUEUE_ENTRY_UNCONFIRMED = "queue_entry_unconfirmed"
    CONSUMER_OFFSET_BEYOND_END = "consumer_offset_beyond_end"
    DELAY_OFFSET_BEYOND_END = "delay_offset_beyond_end"
    CONFIG_DAMAGED = "config_damaged"
    CONFIG_BACKUP_TAKEN = "config_backup_taken"
    CONFIG_TABLE_LOST = "config_table_lost"
    CONFIG_OLDER = "config_older"
    CONFIG_NOT_COPIED = "config_not_copied"
    OPENED_DATABASE_DAMAGED = "opened_database_damaged"
    OPENED_DATABASE_GONE = "opened_database_gone"
    OPENED_DATABASE_UNUSED = "opened_database_unused"
    CONFIG_TABLE_EMPTIED = "config_table_emptied"
    TOPIC_NOT_IN_TABLE = "topic_not_in_table"
    GROUP_NOT_IN_TABLE = "group_not_in_table"
    CONSUMER_OFFSETS_EMPTY = "consumer_offsets_empty"
    COPY_OF_SLAVE = "copy_of_slave"
    QUEUE_BEYOND_TOPIC = "queue_beyond_topic"
    DELAYED_MESSAGES_AGAIN = "delayed_messages_again"
    SETTING_MISMATCH = "setting_mismatch"
    TIMER_MESSAGE_LOST = "timer_message_lost"
    TIMER_MESSAGES_WAIT = "timer_messages_wait"
    TIMER_LOG_MISSING = "timer_log_missing"
    TIMER_UNIT_DAMAGED = "timer_unit_damaged"
    TIMER_UNIT_WRONG = "timer_unit_wrong"
    TIMER_UNIT_BEYOND_END = "timer_unit_beyond_end"
    TIMER_SLOT_WRONG = "timer_slot_wrong"
    TIMER_WHEEL_MISSING = "timer_wheel_missing"
    TIMER_CHECKPOINT_MISSING = "timer_checkpoint_missing"
    TIMER_CHECKPOINT_WRONG = "timer_checkpoint_wrong"
    TIMER_OFFSET_BEYOND_END = "timer_offset_beyond_end"
    TIMER_MESSAGES_AGAIN = "timer_messages_again"
    TIMERS_PASSED_OVER = "timers_passed_over"
    TIMER_START_LATE = "timer_start_late"
    ROCKSDBSTORE_DAMAGED = "rocksdbstore_damaged"
    TRANSACTION_ENTRY_MISSING = "transaction_entry_missing"
    TRANSACTION_ENTRY_WRONG = "transaction_entry_wrong"
    FILE_UNRECOGNISED = "file_unrecognised"
    FILE_NOT_REGULAR = "file_not_regular"
    FILE_UNREADABLE = "file_unreadable"
    QUEUES_COPIED_LATER = "queues_copied_later"
    STORE_REPAIRED = "store_repaired"
    LIVE_COPY = "live_copy"


class Part(Flag):
    """The subject of a finding, and so the part of the pages in which it appears."""

    NONE = 0
    LOG = auto()
    QUEUE = auto()
    INDEX = auto()
    CHECKPOINT = auto()
    CONFIG = auto()
    START = auto()  # what a start of the release does
    REPLICAS = auto()  # this copy against others of its group
    COPY = auto()  # the copy as a whole
    TIMER = auto()  # timer messages


class Cure(Enum):
    """The cure of a finding. The value is the next step of each finding that has no step of its own."""

    NOTHING = Step.NOTHING
    REBUILD_QUEUE = Step.REBUILD_QUEUE
    REBUILD_INDEX = Step.REBUILD_INDEX
    WRITE_CHECKPOINT = Step.WRITE_CHECKPOINT
    SALVAGE = Step.SALVAGE
    LEAVE_OUT = Step.LEAVE_OUT
    REBUILD_TIMERS = Step.REBUILD_TIMERS
    REBUILD_TABLES = Step.REBUILD_TABLES
    CORRECT_OFFSETS = Step.CORRECT_OFFSETS
    OTHER_COPY = Step.OTHER_COPY
    WRITE_EPOCHS = Step.WRITE_EPOCHS
    BY_HAND = Step.OF_CODE  # a person decides: the row has the step


_BY_ANY_REPAIR = {
    Cure.REBUILD_QUEUE, Cure.REBUILD_INDEX, Cure.REBUILD_TABLES, Cure.WRITE_CHECKPOINT, Cure.WRITE_EPOCHS, Cure.SALVAGE,
    Cure.LEAVE_OUT,
}  # fmt: skip


class Stays(Flag):
    """When a finding above a note is no reason against a store that a repair has made."""

    NEVER = 0
    ALWAYS = auto()  # it is about a message or a file that a repair keeps as it is, and nothing is served wrongly
    AS_BEFORE = auto()  # the audit of the copy has found the same
    MOVED_MESSAGE = auto()  # the repair put this message at another queue offset than its own
    PARTIAL_QUEUE = auto()  # the repair left messages of this queue without an entry or at another queue offset
    EMPTY_LOG = auto()  # the repair kept no message


@dataclass(frozen=True, slots=True)
class FindingCode:
    """One kind of disagreement.

    step: the next step, if that of its cure does not say enough: its words, or a step that several codes have.
    follows: for a note, its consequence, if there is one; for another finding, the consequence if its severity may be a graver
    one.
    unread: it is about a file that was not opened.
    raised_step: for a note, the next step of a finding that is above a note.
    named: as a note it changes what a reader does, so a reason of the answer says its message.
    wrong_size_of: kinds of files whose wrong size in a broker.conf causes it.
    shows_missing: above a note it shows that messages existed, and not how many.
    """

    code: Code
    severity: str
    about: Part
    cure: Cure
    meaning: str
    step: Step | str = ""
    follows: str = ""
    unread: bool = False
    raised_step: Step | str = ""
    named: bool = False
    stays: Stays = Stays.NEVER
    wrong_size_of: Part = Part.NONE
    shows_missing: bool = False

    @property
    def next(self) -> Advice:
        """Return a person's next step."""
        return self._advice(self.step, Step.OF_CODE) if self.step else Advice(self.cure.value)

    def next_at(self, severity: str) -> Advice:
        """Return the next step for a finding of that severity."""
        return self._advice(self.raised_step, Step.RAISED_OF_CODE) if self.raised_step and severity != NOTE else self.next

    def _advice(self, step: Step | str, own: Step) -> Advice:
        return Advice(step) if isinstance(step, Step) else Advice(own, (self.code,))


_ROWS = (
    # ---- CommitLog: bytes -------------------------------------------------------------------------------------------
    FindingCode(Code.COMMITLOG_DAMAGED, LOSS, Part.LOG, Cure.OTHER_COPY,
                "Bytes that are no valid message, filler or unwritten space.",
                Step.OTHER_COPY_OR_HEAL),
    FindingCode(Code.COMMITLOG_TORN_TAIL, NOTE, Part.LOG, Cure.NOTHING,
                "The broker died during its last write and left a part of a message; it never acknowledged it as stored.",
                raised_step=Step.SEEK_LAST_MESSAGE),
    FindingCode(Code.COMMITLOG_FOREIGN, LOSS, Part.LOG, Cure.BY_HAND,
                "Messages that are valid but name another physical offset than the one where they are: the file has a wrong"
                " name, or holds stale bytes.",
                "Find out where this file comes from. A broker would serve its messages at the offsets that they name."),
    FindingCode(Code.COMMITLOG_BRIDGED, NOTE, Part.LOG, Cure.NOTHING,
                "A placeholder record that a repair wrote over damaged bytes. A broker reads over it; no consumer sees it."),
    FindingCode(Code.MESSAGE_HEALED, NOTE, Part.LOG, Cure.NOTHING,
                "A damaged record that a repair has made whole: a single change to which everything else in the store led."),
    FindingCode(Code.FILLER_WRONG_SIZE, LOSS, Part.LOG, Cure.SALVAGE,
                "The filler at a segment's end does not have the size of the space that is left."),
    FindingCode(Code.FILLER_HIDES_MESSAGES, LOSS, Part.LOG, Cure.SALVAGE,
                "Valid messages after the filler of a segment: a broker continues with the next segment and never sees them."),
    FindingCode(Code.FILLER_NOT_ZERO, NOTE, Part.LOG, Cure.NOTHING,
                "Bytes other than zero after a segment's filler. Nothing reads them."),
    FindingCode(Code.PROPERTIES_MALFORMED, LOSS, Part.LOG, Cure.OTHER_COPY, stays=Stays.ALWAYS,
                meaning="A message's properties do not have the form that a broker writes. No checksum covers them."),
    FindingCode(Code.MESSAGE_HEADER_ODD, NOTE, Part.LOG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="A message's header holds what no release writes; no checksum covers it. loss: consumers cannot read"
                        " the message.",
                step="Compare this message with another copy: the disk or the copying changed bytes that no check covers.",
                follows="Bytes of the header were changed. As a note: consumers can still read the message.",
                raised_step="Compare this message with another copy: consumers cannot read it, and a repair keeps it as it is."),
    FindingCode(Code.STORE_HOST_ODD, NOTE, Part.LOG, Cure.BY_HAND,
                "One message's store host differs from that of all messages around it: damage, a broker's copy of an older"
                " message, or a start under another IP address (brokerIP1).",
                "Compare this message with another copy. Only its offset message id depends on the host.",
                follows="Where it is damage, other bytes that no check covers may be damaged, too."),
    FindingCode(Code.PROPERTY_CRC_MISMATCH, LOSS, Part.LOG, Cure.OTHER_COPY,
                "The property CRC at a message's end is wrong.", Step.OTHER_COPY_OR_HEAL),
    FindingCode(Code.MESSAGE_LOST, LOSS, Part.LOG, Cure.OTHER_COPY, stays=Stays.AS_BEFORE,
                meaning="A ConsumeQueue entry leads to damaged or zero bytes: its message is lost."),
    FindingCode(Code.MESSAGE_DISPUTED, REBUILDABLE, Part.LOG, Cure.BY_HAND, stays=Stays.AS_BEFORE | Stays.MOVED_MESSAGE,
                meaning="A message disagrees with its queue or index entry about topic, queue, tags or keys. One of them is"
                        " wrong.",
                step="Compare this message with another copy before its queue or index file is rebuilt from it."),
    # ---- CommitLog: files -------------------------------------------------------------------------------------------
    FindingCode(Code.SEGMENT_MISSING, LOSS, Part.LOG, Cure.OTHER_COPY, stays=Stays.AS_BEFORE, wrong_size_of=Part.LOG,
                meaning="A segment is missing: its neighbours leave a gap there, or queue entries lead to it.",
                step=Step.SEEK_SEGMENT),
    FindingCode(Code.SEGMENT_WRONG_SIZE, LOSS, Part.LOG, Cure.BY_HAND, wrong_size_of=Part.LOG,
                meaning="A segment does not have the configured length.",
                step="Copy the file again. Most releases refuse to start with it."),
    FindingCode(Code.SEGMENT_EMPTY, NOTE, Part.LOG, Cure.NOTHING,
                "A segment of length 0.",
                "Nothing, from 5.1.3 on. Earlier releases refuse to start with it: a repair removes it.",
                raised_step=Step.REMOVE_FILE),
    FindingCode(Code.SEGMENT_UNWRITTEN, LOSS, Part.LOG, Cure.OTHER_COPY,
                "A segment or its end is all zero, although a later segment holds messages."),
    FindingCode(Code.SEGMENT_MISNAMED, LOSS, Part.LOG, Cure.BY_HAND, wrong_size_of=Part.LOG,
                meaning="A segment's name is not the physical offset at which it begins.",
                step="Give the file the name that fits its messages."),
    FindingCode(Code.SEGMENT_TWICE, LOSS, Part.LOG, Cure.BY_HAND,
                "Two files are the segment of one number, mostly in two CommitLog folders. A broker loads both.",
                "Keep the file with the right messages."),
    FindingCode(Code.STORES_MERGED, LOSS, Part.LOG, Cure.BY_HAND, stays=Stays.AS_BEFORE,
                meaning="At this segment no queue continues: it and the one before are of two brokers, whose stores were copied"
                        " into one folder.",
                step="Copy the store of each broker again, each into a folder of its own: a repair would mix their messages in"
                     " the same queues."),
    FindingCode(Code.FILLER_OTHER_SIZE, NOTE, Part.LOG, Cure.BY_HAND, named=True,
                meaning="Fillers end inside of segments, all at multiples of a smaller size: the log was written with that size"
                        " of segments.",
                step="In a copy split the files of commitlog/ into pieces of that size, each named after the physical offset at"
                     " which it begins, set mappedFileSizeCommitLog to it, and audit that.",
                follows="A start skips what follows each of these fillers in its segment."),
    FindingCode(Code.COMMITLOG_EMPTY, NOTE, Part.LOG, Cure.BY_HAND,
                "This copy holds no message, and nothing in it shows that it ever held one.",
                "If messages were expected here, copy the store again; a CommitLog that lies elsewhere is named with"
                " --commitlog."),
    FindingCode(Code.COMMITLOG_EMPTIED, LOSS, Part.LOG, Cure.OTHER_COPY, stays=Stays.EMPTY_LOG,
                meaning="This copy holds no message, but other parts of it show that it held some.",
                step="Copy the store again, or take another copy of the same broker. A CommitLog that lies elsewhere is named"
                     " with --commitlog."),
    FindingCode(Code.COMMITLOG_SHRUNK, LOSS, Part.LOG, Cure.BY_HAND,
                "An earlier audit of this store saw messages beyond the place where its CommitLog ends now. Retention never"
                " does that.",
                "Find the copy of that audit, or another one of the same broker. If the log was meant to begin again, give the"
                " store another name."),
    FindingCode(Code.SEGMENT_CHANGED, LOSS, Part.LOG, Cure.BY_HAND,
                "A segment's bytes are not those that an earlier audit read, though its modification time is the same: a disk or"
                " the copying changed them, or somebody who put the time back. No checksum covers all bytes of a message.",
                "Copy this segment again by its bytes (rsync --checksum): a copy by size and time leaves it as it is. If the"
                " broker's own file is the same, compare it with another copy of the same broker."),
    # ---- CommitLog: order -------------------------------------------------------------------------------------------
    FindingCode(Code.QUEUE_OFFSET_GAP, NOTE, Part.QUEUE, Cure.NOTHING, stays=Stays.AS_BEFORE,
                meaning="No message of the CommitLog has this queue offset.",
                step="Nothing, if 5.0.0 to 5.1.0 wrote the store; else compare with a replica.",
                raised_step="Compare with a replica: messages may be missing here."),
    FindingCode(Code.QUEUE_OFFSET_WRONG, LOSS, Part.QUEUE, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="A message's queue offset does not fit between its neighbours': its header is damaged.",
                step="Compare this message with another copy of the same broker; a repair keeps it as it is. explain says"
                     " whether its queue leaves one value for it; a repair makes that with --heal."),
    FindingCode(Code.QUEUE_OFFSET_BACK, LOSS, Part.QUEUE, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="A queue's offset is lower than the one before it.",
                step="Look at both messages: the queue offset of one is damaged or stale. A repair keeps both as they are."),
    FindingCode(Code.QUEUE_BEGINS_AGAIN, NOTE, Part.QUEUE, Cure.BY_HAND, named=True,
                meaning="A queue's offsets begin again, and the queue holds the later messages: its topic was deleted and made"
                        " again, or its queue removed. The earlier messages are in no queue, and a start does not change that.",
                step="Nothing, if the topic was deleted on purpose: query with --topic, --queue and --to-phy-offset shows the"
                     " earlier messages. A repair puts them into their queue only with --with-earlier."),
    FindingCode(Code.STORE_TIME_BACK, NOTE, Part.LOG, Cure.NOTHING, stays=Stays.ALWAYS,
                meaning="A segment's store times are earlier than those before it: a clock was set back.",
                step="Nothing to do. A recovery after a crash may begin too late."),
    FindingCode(Code.STORE_TIME_ODD, NOTE, Part.LOG, Cure.NOTHING, stays=Stays.ALWAYS,
                meaning="A message's store time is far from its neighbours'.",
                step="Nothing to do. A recovery after a crash may begin at the wrong segment.",
                raised_step="Compare this message with another copy; a repair keeps it as it is."),
    # ---- DLedger: the chain of entries, its index, its two texts --------------------------------------------------------------
    FindingCode(Code.LEDGER_CHAIN_BROKEN, LOSS, Part.LOG, Cure.BY_HAND,
                "A DLedger entry's index or term does not continue the entries before it. A recovery that reads it ends there.",
                "Let this node copy its log from another node of its group."),
    FindingCode(Code.LEDGER_ENTRIES_MISSING, LOSS, Part.LOG, Cure.BY_HAND, shows_missing=True,
                meaning="DLedger's checkpoint or index knows entries after the last one of this copy.",
                step="Take another node's copy, or let this node copy its log from the group: these messages are not here."),
    FindingCode(Code.LEDGER_ENTRY_TORN, LOSS, Part.LOG, Cure.LEAVE_OUT,
                "A DLedger entry was cut short, and its header is whole. A start keeps it: consumers whose queue leads to it, and"
                " other nodes, get zeros.",
                "Look for this entry in the copy of another node. A repair of this one ends the log before it."),
    FindingCode(Code.LEDGER_INDEX_MISSING, REBUILDABLE, Part.LOG, Cure.BY_HAND,
                "An index file of DLedger is missing.",
                "Nothing by hand: a start writes the units of the data files that it reads. Older entries then have none."),
    FindingCode(Code.LEDGER_INDEX_WRONG_SIZE, REBUILDABLE, Part.LOG, Cure.BY_HAND,
                "An index file of DLedger does not have its one length: a start ends the process.",
                "Copy the file again, or remove it: a start writes its units again."),
    FindingCode(Code.LEDGER_UNIT_WRONG, REBUILDABLE, Part.LOG, Cure.BY_HAND,
                "Index units of DLedger that do not lead to their entries.",
                "Nothing by hand: a start writes the units of the data files that it reads. Older ones stay wrong."),
    FindingCode(Code.LEDGER_TERM_OLD, REBUILDABLE, Part.LOG, Cure.BY_HAND,
                "The term in currterm is older than the log's last entry, so the node could vote twice in one term.",
                "Copy the file again from this node. Never start a node of a group with an older one."),
    FindingCode(Code.LEDGER_CRASH_CUT, LOSS, Part.START, Cure.BY_HAND,
                "After this unclean exit a start cuts ConsumeQueues too far: it counts messages without DLedger's headers.",
                "Remove abort and the group's own checkpoint from the copy before a start: it then cuts nothing and dispatches"
                " all of the log."),
    # ---- other copies of the same log: one code each for damage, doubt and a log that was continued twice ---------------------
    FindingCode(Code.REPLICA_HOLDS, NOTE, Part.REPLICAS, Cure.OTHER_COPY,
                "Another copy of the group holds valid messages where this one has damage, zeros or no file. Other findings"
                " say what is wrong here.",
                "Take these bytes from the other copy; replicas.json has the ranges.",
                follows="These messages can be saved."),
    FindingCode(Code.REPLICA_DISPUTES, NOTE, Part.REPLICAS, Cure.BY_HAND,
                "Another copy holds this message with other bytes, and both pass every check. Severity loss: the form of its"
                " properties, its queue or index entries, or most copies say that this one is wrong. Severity note: nothing"
                " shows which one is.",
                "Compare the message in both copies before you start either as master.",
                follows="As a note: consumers get one of two versions of this message, by the copy that becomes master.",
                raised_step="Take this message from the other copy; replicas.json names it."),
    FindingCode(Code.REPLICA_DIVERGED, NOTE, Part.REPLICAS, Cure.BY_HAND,
                "Another copy holds other messages in this place, all valid: both copies were written to after they had been"
                " separated.",
                "Choose a master with replicas.json, then send the other copy's messages again.",
                follows="Whichever copy becomes master, consumers do not get the messages that only the other one holds."),
    FindingCode(Code.COPY_IS_BEHIND, REBUILDABLE, Part.REPLICAS, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="Other copies of the group hold messages or newer tables that this copy lacks, and it is no clean earlier"
                        " moment of one of them: as master it would lose these.",
                step="Do not make this copy master as it is: replicas.json says what it lacks, and which copy holds it."),
    # ---- what a broker would do -------------------------------------------------------------------------------------
    FindingCode(Code.MESSAGES_NOT_READ, LOSS, Part.START, Cure.BY_HAND,
                "Messages of this copy lie in a log that a start under these settings does not read. The start makes the queues"
                " fit the log that it reads, and deletes those of these messages.",
                "Put the lines that the message names into broker.conf and audit again."),
    FindingCode(Code.IDENTITY_DIFFERS, LOSS, Part.START, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="The file brokerIdentity names another broker or cluster than broker.conf: the broker asks its controller"
                        " without end, stays fenced, and serves nobody.",
                step="Correct brokerName and brokerClusterName in broker.conf, or remove brokerIdentity from the copy: the"
                     " controller then gives the broker a new id."),
    FindingCode(Code.BROKER_REFUSES, LOSS, Part.START, Cure.LEAVE_OUT, wrong_size_of=Part.LOG | Part.QUEUE,
                meaning="The release would not start on this copy.",
                step="Repair this copy: a repair removes the cause."),
    FindingCode(Code.BROKER_DROPS_MESSAGES, LOSS, Part.START, Cure.SALVAGE, "A start cuts messages that are valid in this copy."),
    FindingCode(Code.BROKER_SKIPS_MESSAGES, LOSS, Part.QUEUE, Cure.SALVAGE, stays=Stays.PARTIAL_QUEUE,
                meaning="A start keeps these messages in the CommitLog, but no consumer gets them.",
                step="Repair this copy before a start: a repair gives them queue entries. Those of an earlier life of their queue"
                     " get none without --with-earlier, and its report names each message that it leaves without an entry."),
    FindingCode(Code.BROKER_HANGS, LOSS, Part.START, Cure.SALVAGE,
                "A start of this release, or in controller mode the election after it, waits at one place in the CommitLog and"
                " never ends. A broker whose election never ends stays fenced.",
                "Repair this copy: a repair makes a store on which both end, or says why it cannot."),
    # ---- ConsumeQueue -----------------------------------------------------------------------------------------------
    FindingCode(Code.QUEUE_ENTRY_MISSING, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE, stays=Stays.PARTIAL_QUEUE,
                meaning="Messages without an entry in their queue."),
    FindingCode(Code.QUEUE_ENTRY_WRONG, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "An entry whose size or tags code does not fit its message."),
    FindingCode(Code.QUEUE_ENTRY_SHIFTED, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE, stays=Stays.MOVED_MESSAGE,
                meaning="Entries at another queue offset than their messages have."),
    FindingCode(Code.QUEUE_ENTRY_UNEXPECTED, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE, stays=Stays.MOVED_MESSAGE,
                meaning="Entries that lead to no message of this queue."),
    FindingCode(Code.QUEUE_ENTRY_TWICE, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE, stays=Stays.MOVED_MESSAGE,
                meaning="A second entry for the same message."),
    FindingCode(Code.QUEUE_ENTRY_BEYOND_END, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "Entries that lead beyond the CommitLog's end.",
                "Repair this copy: a repair cuts the CommitLog and rebuilds this queue."),
    FindingCode(Code.QUEUE_ENTRY_BELOW_MINIMUM, NOTE, Part.QUEUE, Cure.NOTHING,
                "Entries of messages that retention has deleted from the CommitLog."),
    FindingCode(Code.QUEUE_POSITION_ANSWERED, NOTE, Part.QUEUE, Cure.NOTHING,
                "Offsets whose messages are lost: a repair made their entries lead to the queue's next message."),
    FindingCode(Code.QUEUE_PRE_BLANK, NOTE, Part.QUEUE, Cure.NOTHING,
                "Empty entries before the first message of a queue that does not begin at 0."),
    FindingCode(Code.QUEUE_ZERO_ENTRY, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE, "Zeros between entries of a queue."),
    FindingCode(Code.QUEUE_FILE_UNEXPECTED, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "A ConsumeQueue file without an entry, after one that is not full. No broker writes this.",
                "Repair this copy: a start may count the file's first, empty entry."),
    FindingCode(Code.QUEUE_ENTRY_INVALID, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "An entry that no broker writes: a negative offset or no size."),
    FindingCode(Code.QUEUE_DATABASE_DAMAGED, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "RocksDB finds bad bytes in the database of the ConsumeQueues: it serves no entry that lies in them.",
                step=Step.REBUILD_DATABASE),
    FindingCode(Code.QUEUE_DATABASE_OLDER, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "A table file of the ConsumeQueues of which their database knows nothing: its MANIFEST is cut short or an older"
                " one, and RocksDB opens an older state of the queues without an error.",
                step=Step.REBUILD_DATABASE),
    FindingCode(Code.QUEUE_END_WRONG, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "The maximum of a queue in the database of the ConsumeQueues leads to no entry, or does not fit the entry there.",
                step=Step.REBUILD_DATABASE),
    FindingCode(Code.QUEUE_END_UNDECIDED, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "The database of the ConsumeQueues is ahead of the CommitLog: a race inside the broker decides which end the"
                " queue has after a start.",
                step=Step.REBUILD_DATABASE),
    FindingCode(Code.QUEUE_TWIN_MISSING, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "Queues are written twice, in files and in RocksDB: the kind from which no consumer is served lacks entries.",
                step=Step.REBUILD_OTHER_KIND),
    FindingCode(Code.QUEUE_TWIN_DIFFERS, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "Queues are written twice, in files and in RocksDB: the two kinds differ in an entry.",
                step=Step.REBUILD_OTHER_KIND),
    FindingCode(Code.QUEUE_WITHOUT_FILES, REBUILDABLE, Part.QUEUE, Cure.LEAVE_OUT,
                "A queue's folder without a file. A broker lists it as a queue.",
                "Repair this copy: a repair removes the empty folder."),
    FindingCode(Code.QUEUE_FILE_MISSING, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE, wrong_size_of=Part.QUEUE,
                meaning="A file of this queue is missing between its neighbours."),
    FindingCode(Code.QUEUE_FILE_WRONG_SIZE, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE, wrong_size_of=Part.QUEUE,
                meaning="A ConsumeQueue file does not have the configured length."),
    FindingCode(Code.QUEUE_FILE_EMPTY, NOTE, Part.QUEUE, Cure.NOTHING, "A ConsumeQueue file without an entry.",
                raised_step=Step.REMOVE_FILE),
    FindingCode(Code.QUEUE_TOPIC_UNKNOWN, NOTE, Part.QUEUE, Cure.BY_HAND,
                "A queue of a topic that config/topics.json does not name.",
                "Check config/topics.json of this copy before a start."),
    FindingCode(Code.QUEUE_EXT_DAMAGED, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "A unit of a ConsumeQueueExt file is damaged."),
    FindingCode(Code.QUEUE_EXT_DANGLING, REBUILDABLE, Part.QUEUE, Cure.REBUILD_QUEUE,
                "An entry leads to an ext unit that does not exist."),
    # ---- logs of compacted topics -----------------------------------------------------------------------------------
    FindingCode(Code.COMPACTED_FILES_DIFFER, REBUILDABLE, Part.QUEUE, Cure.BY_HAND,
                "A compacted topic's log and its entries do not have the files that a broker writes: it leaves the queue out, or"
                " does not start.", Step.SET_COMPACTED_ASIDE),
    FindingCode(Code.COMPACTED_RECORD_DAMAGED, LOSS, Part.QUEUE, Cure.BY_HAND,
                "A record of a compacted topic's log is damaged. Consumers of the topic read from there alone. Severity"
                " rebuildable: the CommitLog still holds the message.",
                "Compare with another copy of this broker. Where the CommitLog holds the message, send it again, or do as"
                " docs/kinds/compaction.md 6 says."),
    FindingCode(Code.COMPACTED_RECORD_UNLISTED, REBUILDABLE, Part.QUEUE, Cure.BY_HAND,
                "Bytes of a compacted topic's log that have no entry: no consumer gets them.", Step.SET_COMPACTED_ASIDE),
    FindingCode(Code.COMPACTED_ENTRY_WRONG, REBUILDABLE, Part.QUEUE, Cure.BY_HAND,
                "An entry of a compacted topic that does not fit the record to which it leads.", Step.SET_COMPACTED_ASIDE),
    FindingCode(Code.COMPACTED_RECORD_DIFFERS, REBUILDABLE, Part.QUEUE, Cure.BY_HAND,
                "A compacted topic's log and the CommitLog hold other bytes for the same queue offset.",
                "Compare both with another copy. Consumers of the topic get what the compacted log holds."),
    FindingCode(Code.COMPACTED_MESSAGE_MISSING, REBUILDABLE, Part.QUEUE, Cure.BY_HAND,
                "Messages of the CommitLog that a compacted topic's log should hold and does not. Consumers of the topic do not"
                " get them. Severity note: the broker was killed, and puts them at its next start.", Step.SET_COMPACTED_ASIDE),
    FindingCode(Code.COMPACTED_LOG_AHEAD, REBUILDABLE, Part.QUEUE, Cure.BY_HAND,
                "A compacted topic's log would reach beyond its queue after a start: new messages are left out of it until the"
                " queue is as long.",
                "Set the queue's two folders below compaction/ aside before a start."),
    FindingCode(Code.COMPACTED_TOPIC_UNSERVED, LOSS, Part.QUEUE, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="Consumers of a compacted topic read its compacted log alone, and that is not in the copy, or empty: they"
                        " get none of its messages, or only those that a start after a crash dispatches again. It was not copied,"
                        " or the topic was made a compacted one after these messages.",
                step="Copy compaction/ from the broker. If it has none either, and the CommitLog still holds all messages, make"
                     " the log again as docs/kinds/compaction.md 6 says, or take cleanup.policy=COMPACTION from the topic: its"
                     " ordinary queues then serve them."),
    FindingCode(Code.TIERED_MESSAGES, NOTE, Part.COPY, Cure.BY_HAND,
                "By its metadata a tiered store holds messages of this broker. They lie outside of this copy and were not read.",
                "Nothing to do here. Ask the tiered store itself for these messages.",
                follows="This audit says nothing about these messages, neither that they are whole nor that they are lost."),
    # ---- Index ------------------------------------------------------------------------------------------------------
    FindingCode(Code.INDEX_ENTRY_MISSING, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX,
                "Keys of messages without an index entry."),
    FindingCode(Code.INDEX_ENTRY_DANGLING, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX, "Index entries that lead to no message."),
    FindingCode(Code.INDEX_ENTRY_WRONG, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX,
                "An index entry whose hash or time does not fit its message."),
    FindingCode(Code.INDEX_ENTRY_DUPLICATE, NOTE, Part.INDEX, Cure.NOTHING,
                "A message's keys are in the index twice, as after a restart.",
                raised_step=Step.REBUILD_INDEX),
    FindingCode(Code.INDEX_ENTRY_BEYOND_END, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX, shows_missing=True,
                meaning="Index entries beyond the CommitLog's end. They would lead to new messages."),
    FindingCode(Code.INDEX_RANGE_MISSING, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX,
                "Messages with keys that no index file covers.",
                "Repair this copy: a repair rebuilds the index of this range. No release does it after a clean exit."),
    FindingCode(Code.INDEX_RANGE_UNCONFIRMED, NOTE, Part.INDEX, Cure.NOTHING,
                "Messages with keys after confirmOffset are in no index file: a replica in controller mode keeps them back.",
                "Nothing: they are indexed when they are confirmed, or when this broker is elected."),
    FindingCode(Code.INDEX_HEADER_WRONG, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX, wrong_size_of=Part.INDEX,
                meaning="An index file's header does not fit its entries."),
    FindingCode(Code.INDEX_CHAIN_BROKEN, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX, wrong_size_of=Part.INDEX,
                meaning="An index entry's link to the entry before it is wrong."),
    FindingCode(Code.INDEX_SLOT_WRONG, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX, wrong_size_of=Part.INDEX,
                meaning="A hash slot does not hold the newest entry of its chain."),
    FindingCode(Code.INDEX_ENTRIES_BEYOND_COUNT, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX,
                "More entries than the header counts."),
    FindingCode(Code.INDEX_FILE_WRONG_SIZE, REBUILDABLE, Part.INDEX, Cure.REBUILD_INDEX, wrong_size_of=Part.INDEX,
                meaning="An index file does not have the configured length."),
    # ---- checkpoint, abort, config ----------------------------------------------------------------------------------
    FindingCode(Code.CHECKPOINT_MISSING, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_CHECKPOINT,
                "There is no checkpoint. A recovery after a crash reads the whole log and deletes every index file.",
                "Repair this copy: a repair writes a checkpoint. Else expect a long first start."),
    FindingCode(Code.CHECKPOINT_DAMAGED, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_CHECKPOINT,
                "A checkpoint field has a value that no broker writes.",
                "Repair this copy: a repair writes a new checkpoint. Until then recovery begins at the wrong place."),
    FindingCode(Code.CHECKPOINT_ZERO, NOTE, Part.CHECKPOINT, Cure.NOTHING,
                "The checkpoint says that nothing was dispatched although the log holds messages.",
                "Nothing to do. A recovery after a crash reads the whole log.",
                raised_step=Step.WRITE_CHECKPOINT),
    FindingCode(Code.CHECKPOINT_BYTES_BEHIND, NOTE, Part.CHECKPOINT, Cure.NOTHING,
                "Bytes after the checkpoint's known fields, from a newer release or stray."),
    FindingCode(Code.INDEX_PART_FLUSHED, NOTE, Part.INDEX, Cure.NOTHING,
                "The newest index file after an unclean exit: some of its pages are older than others."),
    FindingCode(Code.INDEX_SLOT_OVERCOUNT, NOTE, Part.INDEX, Cure.NOTHING,
                "The header counts entries instead of slots, as 4.7.0 and before did."),
    FindingCode(Code.CHECKPOINT_SHORT, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_CHECKPOINT,
                "A checkpoint file of less than 4,096 bytes."),
    FindingCode(Code.CHECKPOINT_AHEAD, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_CHECKPOINT, shows_missing=True,
                meaning="A checkpoint time is later than the last message's: a recovery would begin too late.",
                step="Repair this copy: a repair writes a new checkpoint. Else remove it before a start."),
    FindingCode(Code.CHECKPOINT_BEHIND, NOTE, Part.CHECKPOINT, Cure.NOTHING,
                "A checkpoint time is earlier than the data: a recovery reads more than it must."),
    FindingCode(Code.CHECKPOINT_OFFSET_BEYOND_END, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_CHECKPOINT, shows_missing=True,
                meaning="A physical offset of the checkpoint is beyond the CommitLog's end."),
    FindingCode(Code.EPOCH_FILE_DAMAGED, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_EPOCHS,
                "The epoch file of controller mode cannot be used: a start fails, or takes older epochs or none.",
                "Compare with the epochs of the other replicas; a repair writes those that fit the log."),
    FindingCode(Code.EPOCH_NOT_RISING, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_EPOCHS,
                "Epochs, or the places where they begin, do not rise from line to line. No broker writes this."),
    FindingCode(Code.EPOCH_BEYOND_END, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_EPOCHS, shows_missing=True,
                meaning="An epoch begins beyond the CommitLog's end: the log was longer when its master was elected.",
                step="Look for the log's end in the other replicas. Elected without it, this broker may not record its epoch."),
    FindingCode(Code.EPOCH_NOT_AT_RECORD, REBUILDABLE, Part.CHECKPOINT, Cure.WRITE_EPOCHS,
                "An epoch begins inside of a record. No broker writes this: other replicas find no common place with this one."),
    FindingCode(Code.QUEUE_ENTRY_UNCONFIRMED, NOTE, Part.QUEUE, Cure.NOTHING,
                "Messages after confirmOffset have no entry in their queue: a replica in controller mode keeps them back.",
                "Nothing: they get their entries when they are confirmed, or when this broker is elected."),
    FindingCode(Code.CONSUMER_OFFSET_BEYOND_END, REBUILDABLE, Part.CONFIG, Cure.CORRECT_OFFSETS, stays=Stays.AS_BEFORE,
                meaning="A consumer group's offset is beyond the queue's new end: it would miss or repeat messages."),
    FindingCode(Code.DELAY_OFFSET_BEYOND_END, REBUILDABLE, Part.CONFIG, Cure.CORRECT_OFFSETS, stays=Stays.AS_BEFORE,
                meaning="A delay level's offset is beyond its queue's new end."),
    FindingCode(Code.CONFIG_DAMAGED, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="A file in config/ does not hold what a broker writes.",
                step="Restore it from its .bak or from another broker of the cluster."),
    # What is wrong with tables in config/ is rebuildable, as no byte of the log is lost, and no message dropped. Topics and
    # queues can be made again from the log; what a group had consumed no log says. Entries that another form still shows are
    # a loss.
    FindingCode(Code.CONFIG_BACKUP_TAKEN, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="A file in config/ cannot be used, and a start takes its .bak, an older state.",
                step="Copy the .bak over the file before a start."),
    FindingCode(Code.CONFIG_TABLE_LOST, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="A start begins without this table, or without entries of it that another form in the copy shows.",
                follows="No message of the CommitLog is lost by it. Exit code 10; 20 if a form in the copy shows entries that a"
                        " start does not hold, which is a loss.",
                step="Restore the file from a backup or from another broker of the cluster before a start."),
    FindingCode(Code.CONFIG_OLDER, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="The table of topics is older than its own .bak: an old file was put in its place.",
                step="Compare the file with its .bak before a start, and keep the newer one."),
    FindingCode(Code.CONFIG_NOT_COPIED, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="There is no config/ in this copy, and its log shows that groups consumed: topics, groups and offsets"
                        " are missing.",
                step="Copy config/ from the broker before a start or a repair: offsets of groups are in no other file.",
                follows="No message of the CommitLog is lost by it. Groups get all messages again, or skip to the end."),
    FindingCode(Code.OPENED_DATABASE_DAMAGED, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="RocksDB finds bad bytes in kvStore/, config/users or config/acls. A broker does not find what lies in or"
                        " after them: popped messages that were not acknowledged, users, access rules.",
                step="Restore the folder from a backup of this broker before a start."),
    FindingCode(Code.OPENED_DATABASE_GONE, NOTE, Part.CONFIG, Cure.BY_HAND,
                "A database that these settings use is missing: kvStore/, config/users or config/acls. A start makes an empty"
                " one.",
                "Look for the folder where the copy was made: it may have been left out. Nothing, if the setting is new.",
                follows="Without kvStore/ popped messages that were not acknowledged never come again. Without config/users every"
                        " client but the initial user is refused; without config/acls every user but super users.",
                named=True),
    FindingCode(Code.OPENED_DATABASE_UNUSED, NOTE, Part.CONFIG, Cure.BY_HAND,
                "A database with entries that these settings do not use: kvStore/, config/users or config/acls.",
                "Check broker.conf: the broker that wrote this store had the setting that the message names.",
                follows="Popped messages in kvStore/ never come again, and users and access rules do not count.",
                named=True),
    FindingCode(Code.CONFIG_TABLE_EMPTIED, NOTE, Part.CONFIG, Cure.BY_HAND,
                "A repair let this table begin empty, as it was asked to: nothing of it could be read in the copy.",
                "Look for the table in another copy of this broker, or set it again with mqadmin.",
                follows="The broker knows none of the entries that this table held.",
                named=True),
    FindingCode(Code.TOPIC_NOT_IN_TABLE, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="Clients cannot find this topic although messages are there: the table of topics lacks it.",
                follows="Exit code 10 if the table is damaged or older; 20 if something shows that the table which a start takes"
                        " has lost it. If nothing does, somebody may have deleted the topic: a note.",
                step="Restore the table, or create these topics with their numbers of queues before clients come back."),
    FindingCode(Code.GROUP_NOT_IN_TABLE, NOTE, Part.CONFIG, Cure.BY_HAND,
                "Groups that have offsets and that the table of groups does not name. A deleted group leaves its offsets.",
                "If one of these groups was not deleted on purpose, create it again with mqadmin updateSubGroup.",
                follows="Such a group comes back with default settings, or not at all."),
    FindingCode(Code.CONSUMER_OFFSETS_EMPTY, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="No group has an offset although groups consumed: the log holds messages that they gave back to be"
                        " retried. Groups begin at the end by default and miss what they had not consumed.",
                step="Set the offsets before consumers come: take config/consumerOffset.json from another copy of this broker, or"
                     " use mqadmin resetOffsetByTime."),
    FindingCode(Code.COPY_OF_SLAVE, NOTE, Part.CONFIG, Cure.BY_HAND, named=True,
                meaning="By its broker.conf this copy is a slave's: it may end before its master's, and its topics, groups and"
                        " offsets may be older.",
                step="Start its master's copy instead, if that can be had.",
                follows="As a slave it takes over what its master has."),
    FindingCode(Code.QUEUE_BEYOND_TOPIC, NOTE, Part.CONFIG, Cure.BY_HAND,
                "Messages in queues beyond the topic's numbers of queues: no client reads them.",
                "Raise the topic's number of read queues if these messages are still wanted.",
                follows="Consumers do not get these messages."),
    FindingCode(Code.DELAYED_MESSAGES_AGAIN, REBUILDABLE, Part.CONFIG, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="A delay level without an offset: a start delivers all messages in its queue again.",
                step="Restore config/delayOffset.json before a start, or be ready for messages that come twice."),
    FindingCode(Code.SETTING_MISMATCH, NOTE, Part.CONFIG, Cure.BY_HAND,
                "A setting does not fit the files of this copy.",
                "Pass the broker's own broker.conf.",
                follows="The audit may have used other settings than the broker's: with its own the result may be another one."),
    # ---- timers -----------------------------------------------------------------------------------------------------
    FindingCode(Code.TIMER_MESSAGE_LOST, LOSS, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.AS_BEFORE,
                meaning="Timer messages that are in the log, and that a start never delivers: their time is past for the timer"
                        " and no delivered copy of them stays, or no slot leads to their units, or these are gone."),
    FindingCode(Code.TIMER_MESSAGES_WAIT, NOTE, Part.TIMER, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="Timer messages wait, and the broker's settings keep the service off that delivers timer messages.",
                step="Nothing, if that is meant; else set timerWheelEnable=true in broker.conf.",
                follows="No consumer gets these messages while the setting stays. A start loses none of them.",
                named=True),
    FindingCode(Code.TIMER_LOG_MISSING, REBUILDABLE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="A file of the timer log is missing. The messages that its units lead to are not delivered."),
    FindingCode(Code.TIMER_UNIT_DAMAGED, REBUILDABLE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="A part of the timer log that is no unit. A start cuts the log there and takes the messages from their"
                        " queue again, or, further back, no longer finds what the slot held before it."),
    FindingCode(Code.TIMER_UNIT_WRONG, REBUILDABLE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="A unit of the timer log, or an entry of timers in RocksDB, does not fit the timer message that it leads"
                        " to; or a unit does not fit the one before it in its slot."),
    FindingCode(Code.TIMER_UNIT_BEYOND_END, REBUILDABLE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="Units of the timer log, or entries of timers in RocksDB, lead beyond the CommitLog's end. When their"
                        " time comes a broker finds nothing there, or what was written there since.",
                step="Look for the end of the log in another copy of the same broker: audit that copy and use it instead. A"
                     " repair of this one leaves these units out."),
    FindingCode(Code.TIMER_SLOT_WRONG, REBUILDABLE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="A slot of the timer wheel does not fit the units of its time: messages of that time would not be"
                        " delivered."),
    FindingCode(Code.TIMER_WHEEL_MISSING, REBUILDABLE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="The timer wheel is missing or empty. A start makes slots from the timer log's last files alone: messages"
                        " whose units lie before them, in no chain of these slots, are never delivered."),
    FindingCode(Code.TIMER_CHECKPOINT_MISSING, REBUILDABLE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="The timer's checkpoint is missing or says nothing: a start takes every timer message from the beginning"
                        " and delivers those again that were delivered."),
    FindingCode(Code.TIMER_CHECKPOINT_WRONG, REBUILDABLE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="The timer's checkpoint does not fit the timer log, or holds what no broker writes."),
    FindingCode(Code.TIMER_OFFSET_BEYOND_END, NOTE, Part.TIMER, Cure.REBUILD_TIMERS, stays=Stays.ALWAYS,
                meaning="The timer has read its queue further than the queue reaches. Since 5.3.2 a start sets it back; before,"
                        " the messages that are sent until the queue is as long again are never delivered.",
                step="Nothing, from 5.3.2 on.",
                raised_step="Repair this copy, or start it with 5.3.2 or later."),
    FindingCode(Code.TIMER_MESSAGES_AGAIN, NOTE, Part.TIMER, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="Timer messages that were delivered and that a start takes out of their queue again. With timers in"
                        " RocksDB this is so after every kill, and even after a clean stop for messages that were due when they"
                        " were sent.",
                step="Nothing, where consumers bear messages that come twice.",
                follows="Consumers get these messages twice."),
    FindingCode(Code.TIMERS_PASSED_OVER, LOSS, Part.TIMER, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="Timer messages that a start at the named moment never delivers: their time is too long before it.",
                step="Repair this copy with --late-timers: a start within seven days of that delivers them. Or send them again."),
    FindingCode(Code.TIMER_START_LATE, NOTE, Part.TIMER, Cure.BY_HAND, stays=Stays.ALWAYS,
                meaning="Timers wait in RocksDB, and the time up to which timers were delivered is not stored there, as none was"
                        " delivered yet. A start then begins ten seconds before its own time.",
                step="Start the broker before the first of them is due, or send again what is passed over.",
                follows="Timers that are due more than ten seconds before the start are never delivered."),
    FindingCode(Code.ROCKSDBSTORE_DAMAGED, REBUILDABLE, Part.TIMER | Part.INDEX, Cure.REBUILD_TABLES,
                meaning="RocksDB finds bad bytes in rocksdbstore/, where index, timers or transactions lie. What lies in or after"
                        " them is not found; timers there are never delivered. This audit does not judge its entries.",
                follows="No message of the CommitLog is lost by it. Exit code 10; 20 if these settings keep timers there."),
    FindingCode(Code.TRANSACTION_ENTRY_MISSING, REBUILDABLE, Part.INDEX, Cure.REBUILD_TABLES,
                meaning="Half messages that nothing marks as done, and that have no entry in RocksDB: the broker never asks their"
                        " producers. A broker that gave a transaction up after many questions leaves the same, without a trace in"
                        " the log."),
    FindingCode(Code.TRANSACTION_ENTRY_WRONG, REBUILDABLE, Part.INDEX, Cure.REBUILD_TABLES,
                meaning="An entry of transactions in RocksDB leads to no half message or does not fit it, or should have been"
                        " removed. The broker asks the producer about whatever lies there, or removes the entry."),
    # ---- the copy as a whole ----------------------------------------------------------------------------------------
    FindingCode(Code.FILE_UNRECOGNISED, NOTE, Part.COPY, Cure.NOTHING, "A file with a name that no release writes here.",
                raised_step=Step.REMOVE_FILE),
    FindingCode(Code.FILE_NOT_REGULAR, NOTE, Part.COPY, Cure.BY_HAND,
                "A link that leads out of the store, a device, a socket or a pipe. It was not opened.",
                "Put the file itself in place of this link or device, then audit again.",
                unread=True),
    FindingCode(Code.FILE_UNREADABLE, NOTE, Part.COPY, Cure.BY_HAND,
                "A file could not be read.",
                "Make it readable and run the audit again.",
                unread=True),
    FindingCode(Code.QUEUES_COPIED_LATER, REBUILDABLE, Part.COPY, Cure.BY_HAND,
                "The ConsumeQueues have messages beyond the CommitLog's end: they were copied later, or the log's last part is"
                " gone.",
                Step.COPY_AGAIN_IF_LIVE),
    FindingCode(Code.STORE_REPAIRED, NOTE, Part.COPY, Cure.OTHER_COPY,
                "A repair made this store and gave up messages that it could not keep: its report beside the store has them.",
                "Look for these messages in another copy of the same broker if they matter.",
                follows="No consumer gets these messages from this store."),
    FindingCode(Code.LIVE_COPY, NOTE, Part.COPY, Cure.BY_HAND,
                "The copy was probably taken from a running broker: its parts are of different moments.",
                Step.COPY_AGAIN_IF_LIVE,
                follows="Other findings may come from the copying alone: the broker itself may be sound."),
)  # fmt: skip

CATALOGUE: dict[str, FindingCode] = {row.code: row for row in _ROWS}

BY_A_REPAIR = frozenset(row.next for row in _ROWS if row.cure in _BY_ANY_REPAIR)
"""Next steps that any repair takes: where one is offered, nobody has to read them."""

STARTS_DISPATCH = Advice(Step.STARTS_DISPATCH)
BY_A_START = (STARTS_DISPATCH, CATALOGUE[Code.LEDGER_INDEX_MISSING].next, CATALOGUE[Code.LEDGER_UNIT_WRONG].next)
"""Next steps that a start takes."""

CURED = frozenset(row.code for row in _ROWS if row.cure in {*_BY_ANY_REPAIR, Cure.REBUILD_TIMERS})
"""Codes of findings that any repair cures, where they are above a note."""

WITHOUT_DONOR = {
    Step.OTHER_COPY: Step.OTHER_COPY_ALONE,
    Step.OTHER_COPY_OR_HEAL: Step.OTHER_COPY_ALONE,
    Step.SEEK_LAST_MESSAGE: Step.SEEK_LAST_MESSAGE_ALONE,
    Step.SEEK_SEGMENT: Step.SEEK_SEGMENT_ALONE,
}
"""Next steps that name a donor, and what is left of them for a kind of store that no donor helps."""

SETTING_OF_STOP = {"dup_info": "duplicationEnable", "property_crc_missing": "forceVerifyPropCRC"}
"""Stop reasons at records that may be sound: the setting that asks for what they lack, if it was switched on later."""

STOP_REASONS: dict[str, str] = {
    # The record itself (the checks of recovery.md 3).
    "no_room": "Too few bytes are left in the segment for another record.",
    "size_beyond_file": "The record's size is larger than the rest of the segment.",
    "field_beyond_file": "A field of the record reaches beyond the segment.",
    "field_beyond_record": "A field of the record is larger than the record.",
    "unwritten": "Size and magic are zero: nothing was written here.",
    "magic": "This release does not know the record's magic.",
    "negative_size": "The record's size is negative.",
    "body_crc": "The body's checksum is wrong.",
    "topic_length": "The topic's length is negative.",
    "dup_info": "duplicationEnable is on, and the record has no DUP_INFO of two parts.",
    "delay": "The record is delayed, and its DELAY is no number.",
    "entry_chain": "The entry's index or term does not continue the entries before it.",
    "property_crc_missing": "forceVerifyPropCRC is on, and the record has no property CRC.",
    "property_crc": "The property CRC is wrong.",
    "size_mismatch": "The record's size is not the sum of its fields.",
    "inner_batch": "INNER_NUM or INNER_BASE is no number.",
    "phy_offset": "The record names another physical offset than the one where it is.",
    "frame_header": "The header before the record is not that record's.",
    # Where no record is at fault.
    "filler": "An end-of-segment filler.",
    "empty": "The segment holds no bytes.",
    "no_commitlog": "There is no segment at all.",
    "end_of_last_file": "The last segment was read to its end.",
    "outside_file": "checkCommitLogOffsetOnRecover is on, and the record names a physical offset outside its segment.",
}
"""Why a broker's scan of the CommitLog ends: the values of plan.json's `stop_reason` and of the segments' rows."""

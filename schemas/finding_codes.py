"""The catalogue of findings (code -> severity, meaning, next step) and of stop reasons. Codes are stable, sentences are not.

A severity tells the consequence: `note` (a healthy broker leaves such a state behind, or it changes nothing), `rebuildable`
(derived data; the CommitLog suffices), `loss` (bytes of the CommitLog are damaged or missing, or a start would drop messages,
or the release would not start at all).
A finding may carry a severity or a next step of its own where the evidence says more than the code does.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.rows import LOSS, NOTE, REBUILDABLE

DAMAGED = "commitlog_damaged"
TORN = "commitlog_torn_tail"
FOREIGN = "commitlog_foreign"
PROPERTY_CRC = "property_crc_mismatch"
PROPERTIES = "properties_malformed"
HEADER_ODD = "message_header_odd"
HOST_ODD = "store_host_odd"
BRIDGED = "commitlog_bridged"
FILLER_SIZE = "filler_wrong_size"
FILLER_HIDES = "filler_hides_messages"
FILLER_NOT_ZERO = "filler_not_zero"
TIME_ODD = "store_time_odd"
TIME_BACK = "store_time_back"
ENTRY_WRONG = "queue_entry_wrong"
EXT_DAMAGED = "queue_ext_damaged"
EXT_DANGLING = "queue_ext_dangling"
INDEX_MISSING = "index_entry_missing"
INDEX_DANGLING = "index_entry_dangling"
INDEX_BEYOND = "index_entry_beyond_end"
INDEX_WRONG = "index_entry_wrong"
INDEX_HEADER = "index_header_wrong"
INDEX_DUPLICATE = "index_entry_duplicate"


@dataclass(frozen=True, slots=True)
class FindingCode:
    """One kind of disagreement. next: what a person does about it, one sentence."""

    code: str
    severity: str
    meaning: str
    next: str


_NOTHING = "Nothing to do."
_REBUILD_QUEUE = "Rebuild this queue from the CommitLog: a repair does it."
_REBUILD_INDEX = "Rebuild this index file from the CommitLog: a repair does it. Lookups by key are wrong until then."
_COMPARE_REPLICA = "Look for these bytes in another copy of the same broker; a repair takes them with --donor."
_COMPARE_MESSAGE = "Compare this message with another copy of the same broker; a repair keeps it as it is."
_REPAIR = "Repair this copy with --policy salvage before a start: it keeps every valid message."

END_GONE = (  # the next step of a missing segment after the copy's last one
    "The end of the log is gone, and no repair adds it, not with a donor either: where another copy of this broker has it,"
    " audit that copy and use it instead."
)

_ROWS = (
    # ---- CommitLog: bytes -------------------------------------------------------------------------------------------
    (DAMAGED, LOSS, "Bytes that are no valid message, filler or unwritten space.", _COMPARE_REPLICA),
    (
        TORN,
        NOTE,
        "The broker died during its last write and left a part of a message; it never acknowledged it as stored.",
        _NOTHING,
    ),
    (
        FOREIGN,
        LOSS,
        "Messages that are valid but name another physical offset than the one where they are: the file has a wrong name, or"
        " holds stale bytes.",
        "Find out where this file comes from. A broker would serve its messages at the offsets that they name.",
    ),
    (
        BRIDGED,
        NOTE,
        "A placeholder record that a repair wrote over damaged bytes. A broker reads over it; no consumer sees it.",
        _NOTHING,
    ),
    (FILLER_SIZE, LOSS, "The filler at a segment's end does not have the size of the space that is left.", _REPAIR),
    (
        FILLER_HIDES,
        LOSS,
        "Valid messages after the filler of a segment: a broker continues with the next segment and never sees them.",
        _REPAIR,
    ),
    (FILLER_NOT_ZERO, NOTE, "Bytes other than zero after a segment's filler. Nothing reads them.", _NOTHING),
    (
        PROPERTIES,
        LOSS,
        "A message's properties do not have the form that a broker writes. No checksum covers them.",
        _COMPARE_REPLICA,
    ),
    (
        HEADER_ODD,
        NOTE,
        "A message's header holds what no release writes; no checksum covers it. loss: consumers cannot read the message.",
        "Compare this message with another copy: the disk or the copying changed bytes that no check covers.",
    ),
    (
        HOST_ODD,
        NOTE,
        "One message's store host differs from that of all messages around it: damage, a broker's copy of an older message, or a"
        " start under another IP address (brokerIP1).",
        "Compare this message with another copy. Only its offset message id depends on the host.",
    ),
    (PROPERTY_CRC, LOSS, "The property CRC at a message's end is wrong.", _COMPARE_REPLICA),
    (
        "message_lost",
        LOSS,
        "A ConsumeQueue entry leads to damaged or zero bytes: its message is lost.",
        _COMPARE_REPLICA,
    ),
    (
        "message_disputed",
        REBUILDABLE,
        "A message disagrees with its queue or index entry about topic, queue, tags or keys. One of them is wrong.",
        "Compare this message with another copy before its queue or index file is rebuilt from it.",
    ),
    # ---- CommitLog: files -------------------------------------------------------------------------------------------
    (
        "segment_missing",
        LOSS,
        "A segment is missing: its neighbours leave a gap there, or queue entries lead to it.",
        "Look for this segment in another copy of the same broker; a repair takes it with --donor where others follow it here.",
    ),
    (
        "segment_wrong_size",
        LOSS,
        "A segment does not have the configured length.",
        "Copy the file again. Most releases refuse to start with it.",
    ),
    (
        "segment_empty",
        NOTE,
        "A segment of length 0.",
        "Nothing, from 5.1.3 on. Earlier releases refuse to start with it: a repair removes it.",
    ),
    (
        "segment_unwritten",
        LOSS,
        "A segment or its end is all zero, although a later segment holds messages.",
        _COMPARE_REPLICA,
    ),
    (
        "segment_misnamed",
        LOSS,
        "A segment's name is not the physical offset at which it begins.",
        "Give the file the name that fits its messages.",
    ),
    (
        "segment_twice",
        LOSS,
        "Two CommitLog folders hold a segment of this name. A broker loads both.",
        "Keep the file with the right messages.",
    ),
    (
        "commitlog_empty",
        NOTE,
        "This copy holds no message, and nothing in it shows that it ever held one.",
        "If messages were expected here, copy the store again; a CommitLog that lies elsewhere is named with --commitlog.",
    ),
    (
        "commitlog_emptied",
        LOSS,
        "This copy holds no message, but other parts of it show that it held some.",
        "Copy the store again, or take another copy of the same broker. A CommitLog that lies elsewhere is named with"
        " --commitlog.",
    ),
    (
        "commitlog_shrunk",
        LOSS,
        "An earlier audit of this store saw messages beyond the place where its CommitLog ends now. Retention never does that.",
        "Find the copy of that audit, or another one of the same broker. If the log was meant to begin anew, give the store"
        " another name.",
    ),
    # ---- CommitLog: order -------------------------------------------------------------------------------------------
    (
        "queue_offset_gap",
        NOTE,
        "No message of the CommitLog has this queue offset.",
        "Nothing, if 5.0.0 to 5.1.0 wrote the store; else compare with a replica.",
    ),
    (
        "queue_offset_wrong",
        LOSS,
        "A message's queue offset does not fit between its neighbours': its header is damaged.",
        _COMPARE_MESSAGE,
    ),
    (
        "queue_offset_back",
        LOSS,
        "A queue's offset is lower than the one before it.",
        "Look at both messages: the queue offset of one is damaged or stale. A repair keeps both as they are.",
    ),
    (
        TIME_BACK,
        NOTE,
        "A segment's store times are earlier than those before it: a clock was set back.",
        "Nothing to do. A recovery after a crash may begin too late.",
    ),
    (
        TIME_ODD,
        NOTE,
        "A message's store time is far from its neighbours'.",
        "Nothing to do. A recovery after a crash may begin at the wrong segment.",
    ),
    # ---- other copies of the same log: one code each for damage, doubt and a log that was continued twice ---------------------
    (
        "replica_holds",
        NOTE,
        "Another copy of the group holds valid messages where this one has damage, zeros or no file. Other findings say what is"
        " wrong here.",
        "Take these bytes from the other copy; replicas.json has the ranges.",
    ),
    (
        "replica_disputes",
        NOTE,
        "Another copy holds this message with other bytes, and both pass every check. Severity loss: the form of its properties,"
        " its queue or index entries, or most copies say that this one is wrong. Severity note: nothing tells which one is.",
        "Compare the message in both copies before you start either as master.",
    ),
    (
        "replica_diverged",
        NOTE,
        "Another copy holds other messages in this place, all valid: both copies were written to after they had been separated.",
        "Choose a master with replicas.json, then send the other copy's messages again.",
    ),
    # ---- what a broker would do -------------------------------------------------------------------------------------
    (
        "broker_refuses",
        LOSS,
        "The release would not start on this copy.",
        "Repair this copy: a repair removes the cause.",
    ),
    ("broker_drops_messages", LOSS, "A start cuts messages that are valid in this copy.", _REPAIR),
    ("broker_skips_messages", LOSS, "A start keeps these messages in the CommitLog, but no consumer gets them.", _REPAIR),
    (
        "broker_hangs",
        LOSS,
        "A start of this release never ends: it waits at a gap in the CommitLog.",
        "Repair this copy: a repair closes the gap.",
    ),
    # ---- ConsumeQueue -----------------------------------------------------------------------------------------------
    ("queue_entry_missing", REBUILDABLE, "Messages without an entry in their queue.", _REBUILD_QUEUE),
    (ENTRY_WRONG, REBUILDABLE, "An entry whose size or tags code does not fit its message.", _REBUILD_QUEUE),
    ("queue_entry_shifted", REBUILDABLE, "Entries at another queue offset than their messages have.", _REBUILD_QUEUE),
    ("queue_entry_unexpected", REBUILDABLE, "Entries that lead to no message of this queue.", _REBUILD_QUEUE),
    ("queue_entry_twice", REBUILDABLE, "A second entry for the same message.", _REBUILD_QUEUE),
    (
        "queue_entry_beyond_end",
        REBUILDABLE,
        "Entries that lead beyond the CommitLog's end.",
        "Repair this copy: a repair cuts the CommitLog and rebuilds this queue.",
    ),
    ("queue_entry_below_minimum", NOTE, "Entries of messages that retention has deleted from the CommitLog.", _NOTHING),
    (
        "queue_position_answered",
        NOTE,
        "Offsets whose messages are lost: a repair made their entries lead to the queue's next message.",
        _NOTHING,
    ),
    ("queue_pre_blank", NOTE, "Empty entries before the first message of a queue that does not begin at 0.", _NOTHING),
    ("queue_zero_entry", REBUILDABLE, "Zeros between entries of a queue.", _REBUILD_QUEUE),
    (
        "queue_file_unexpected",
        REBUILDABLE,
        "A ConsumeQueue file without an entry, after one that is not full. No broker writes this.",
        "Repair this copy: a start may count the file's first, empty entry.",
    ),
    ("queue_entry_invalid", REBUILDABLE, "An entry that no broker writes: a negative offset or no size.", _REBUILD_QUEUE),
    (
        "queue_without_files",
        REBUILDABLE,
        "A queue's folder without a file. A broker lists it as a queue.",
        "Repair this copy: a repair removes the empty folder.",
    ),
    ("queue_file_missing", REBUILDABLE, "A file of this queue is missing between its neighbours.", _REBUILD_QUEUE),
    ("queue_file_wrong_size", REBUILDABLE, "A ConsumeQueue file does not have the configured length.", _REBUILD_QUEUE),
    ("queue_file_empty", NOTE, "A ConsumeQueue file without an entry.", _NOTHING),
    (
        "queue_topic_unknown",
        NOTE,
        "A queue of a topic that config/topics.json does not name.",
        "Check config/topics.json of this copy before a start.",
    ),
    (EXT_DAMAGED, REBUILDABLE, "A unit of a ConsumeQueueExt file is damaged.", _REBUILD_QUEUE),
    (EXT_DANGLING, REBUILDABLE, "An entry leads to an ext unit that does not exist.", _REBUILD_QUEUE),
    # ---- Index ------------------------------------------------------------------------------------------------------
    (INDEX_MISSING, REBUILDABLE, "Keys of messages without an index entry.", _REBUILD_INDEX),
    (INDEX_DANGLING, REBUILDABLE, "Index entries that lead to no message.", _REBUILD_INDEX),
    (INDEX_WRONG, REBUILDABLE, "An index entry whose hash or time does not fit its message.", _REBUILD_INDEX),
    (INDEX_DUPLICATE, NOTE, "A message's keys are in the index twice, as after a restart.", _NOTHING),
    (
        INDEX_BEYOND,
        REBUILDABLE,
        "Index entries beyond the CommitLog's end. They would lead to new messages.",
        _REBUILD_INDEX,
    ),
    (
        "index_range_missing",
        REBUILDABLE,
        "Messages with keys that no index file covers.",
        "Repair this copy: a repair rebuilds the index of this range. No release does it after a clean exit.",
    ),
    (INDEX_HEADER, REBUILDABLE, "An index file's header does not fit its entries.", _REBUILD_INDEX),
    ("index_chain_broken", REBUILDABLE, "An index entry's link to the entry before it is wrong.", _REBUILD_INDEX),
    ("index_slot_wrong", REBUILDABLE, "A hash slot does not hold the newest entry of its chain.", _REBUILD_INDEX),
    ("index_entries_beyond_count", REBUILDABLE, "More entries than the header counts.", _REBUILD_INDEX),
    ("index_file_wrong_size", REBUILDABLE, "An index file does not have the configured length.", _REBUILD_INDEX),
    # ---- checkpoint, abort, config ----------------------------------------------------------------------------------
    (
        "checkpoint_missing",
        REBUILDABLE,
        "There is no checkpoint. A recovery after a crash reads the whole log and deletes every index file.",
        "Repair this copy: a repair writes a checkpoint. Else expect a long first start.",
    ),
    (
        "checkpoint_damaged",
        REBUILDABLE,
        "A checkpoint field has a value that no broker writes.",
        "Repair this copy: a repair writes a new checkpoint. Until then recovery begins at the wrong place.",
    ),
    (
        "checkpoint_zero",
        NOTE,
        "The checkpoint says that nothing was dispatched although the log holds messages.",
        "Nothing to do. A recovery after a crash reads the whole log.",
    ),
    ("checkpoint_bytes_behind", NOTE, "Bytes after the checkpoint's known fields, from a newer release or stray.", _NOTHING),
    (
        "index_part_flushed",
        NOTE,
        "The newest index file after an unclean exit: some of its pages are older than others.",
        _NOTHING,
    ),
    ("index_slot_overcount", NOTE, "The header counts entries instead of slots, as 4.7.0 and before did.", _NOTHING),
    (
        "checkpoint_short",
        REBUILDABLE,
        "A checkpoint file of less than 4,096 bytes.",
        "Repair this copy: a repair writes a new checkpoint.",
    ),
    (
        "checkpoint_ahead",
        REBUILDABLE,
        "A checkpoint time is later than the last message's: a recovery would begin too late.",
        "Repair this copy: a repair writes a new checkpoint. Else remove it before a start.",
    ),
    ("checkpoint_behind", NOTE, "A checkpoint time is earlier than the data: a recovery reads more than it must.", _NOTHING),
    (
        "checkpoint_offset_beyond_end",
        REBUILDABLE,
        "A physical offset of the checkpoint is beyond the CommitLog's end.",
        "Repair this copy: a repair writes a new checkpoint.",
    ),
    (
        "consumer_offset_beyond_end",
        LOSS,
        "A consumer group's offset is beyond the queue's new end: it would miss or repeat messages.",
        "Repair this copy with --fix-offsets: it sets the offset back to the queue's new end.",
    ),
    (
        "delay_offset_beyond_end",
        LOSS,
        "A delay level's offset is beyond its queue's new end.",
        "Repair this copy with --fix-offsets: it sets the offset back to the queue's new end.",
    ),
    (
        "config_damaged",
        REBUILDABLE,
        "A file in config/ does not hold what a broker writes.",
        "Restore it from its .bak or from another broker of the cluster.",
    ),
    ("setting_mismatch", NOTE, "A setting does not fit the files of this copy.", "Pass the broker's own broker.conf."),
    # ---- the copy as a whole ----------------------------------------------------------------------------------------
    ("file_unrecognised", NOTE, "A file with a name that no release writes here.", _NOTHING),
    (
        "file_not_regular",
        NOTE,
        "A link that leads out of the store, a device, a socket or a pipe. It was not opened.",
        "Copy the file itself.",
    ),
    (
        "file_unreadable",
        NOTE,
        "A file could not be read. The audit is incomplete.",
        "Make it readable and run the audit again.",
    ),
    (
        "queues_copied_later",
        REBUILDABLE,
        "The ConsumeQueues have messages beyond the CommitLog's end: they were copied later, or the log's last part is gone.",
        "Stop the broker and copy again. If its machine lost power, compare with a replica.",
    ),
    (
        "store_repaired",
        NOTE,
        "A repair made this store and gave up messages that it could not keep: its report beside the store has them.",
        "Look for these messages in another copy of the same broker if they matter.",
    ),
    (
        "live_copy",
        NOTE,
        "The copy was probably taken from a running broker: its parts are of different moments.",
        "Stop the broker and copy again for an exact answer. If its machine lost power, compare with a replica.",
    ),
)

CATALOGUE: dict[str, FindingCode] = {row[0]: FindingCode(*row) for row in _ROWS}

BY_A_REPAIR = frozenset(
    row.next
    for row in CATALOGUE.values()
    if row.next in (_REPAIR, _REBUILD_QUEUE, _REBUILD_INDEX) or row.next.startswith("Repair this copy:")
)
"""Next steps that any repair takes: where one is offered, nobody has to read them."""

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
    "property_crc_missing": "forceVerifyPropCRC is on, and the record has no property CRC.",
    "property_crc": "The property CRC is wrong.",
    "size_mismatch": "The record's size is not the sum of its fields.",
    "inner_batch": "INNER_NUM or INNER_BASE is no number.",
    "phy_offset": "The record names another physical offset than the one where it is.",
    # Where no record is at fault.
    "filler": "An end-of-segment filler.",
    "empty": "The segment holds no bytes.",
    "no_commitlog": "There is no segment at all.",
    "end_of_last_file": "The last segment was read to its end.",
    "outside_file": "checkCommitLogOffsetOnRecover is on, and the record names a physical offset outside its segment.",
}
"""Why a broker's scan of the CommitLog ends: the values of plan.json's `stop_reason` and of the segments' rows."""

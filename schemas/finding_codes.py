"""The catalogue of findings (code -> severity, meaning, next step) and of stop reasons. Codes are stable, sentences are not.

A severity tells the consequence: `note` (a healthy broker leaves such a state behind, or it changes nothing), `rebuildable`
(derived data; the CommitLog suffices), `loss` (bytes of the CommitLog are damaged or missing, or a start would drop messages,
or the release would not start at all).
A finding may carry a severity or a next step of its own where the evidence says more than the code does.
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.rows import LOSS, NOTE, REBUILDABLE


@dataclass(frozen=True, slots=True)
class FindingCode:
    """One kind of disagreement. next: what a person does about it, one sentence."""

    code: str
    severity: str
    meaning: str
    next: str


_NOTHING = "Nothing to do."
_REBUILD_QUEUE = "Rebuild this queue from the CommitLog before the copy is served."
_REBUILD_INDEX = "Delete and rebuild this index file from the CommitLog; lookups by key are wrong until then."
_COMPARE_REPLICA = "Compare with another copy of the same broker before this one is started; the bytes are not in this one."
_READ_PLAN = "Read the plan: it says what a start would cut; take what is behind it from this copy or a replica first."

_ROWS = (
    # ---- CommitLog: bytes -------------------------------------------------------------------------------------------
    ("commitlog_damaged", LOSS, "Bytes of a segment that are no valid message, filler or unwritten tail.", _COMPARE_REPLICA),
    (
        "commitlog_torn_tail",
        NOTE,
        "The last write of a broker that died, cut short; it was never acknowledged as stored.",
        _NOTHING,
    ),
    (
        "commitlog_foreign",
        LOSS,
        "Messages that are valid by themselves but store another physical offset than their position: a file under a wrong"
        " name, or stale bytes.",
        "Find out where this file comes from; a broker would take these messages at the offsets that they store.",
    ),
    (
        "commitlog_bridged",
        NOTE,
        "A record that a repair put in the place of damaged bytes, so that a broker's scan walks over them; nothing serves it.",
        _NOTHING,
    ),
    ("filler_wrong_size", LOSS, "An end-of-segment filler whose size is not what is left of the segment.", _READ_PLAN),
    (
        "filler_hides_messages",
        LOSS,
        "Valid messages behind an end-of-segment filler: a broker goes on with the next segment and never sees them.",
        _READ_PLAN,
    ),
    ("filler_not_zero", NOTE, "Bytes other than zero behind a filler that ends its segment; nothing reads them.", _NOTHING),
    (
        "properties_malformed",
        LOSS,
        "A message's properties are not of the form that a broker writes; no checksum covers them.",
        _COMPARE_REPLICA,
    ),
    (
        "message_header_odd",
        NOTE,
        "A message's header holds what no release writes; no checksum covers it. loss: where consumers cannot read the message.",
        "Compare this message with another copy: its disk or its copying has changed bytes that no check covers.",
    ),
    (
        "store_host_odd",
        NOTE,
        "One message's store host is not that of all messages around it: damage, or the broker copied an older message.",
        "Compare this message with another copy; nothing but its offset message id depends on the host.",
    ),
    ("property_crc_mismatch", LOSS, "The property CRC appended to a message does not fit its bytes.", _COMPARE_REPLICA),
    (
        "message_lost",
        LOSS,
        "A message that a ConsumeQueue entry knows and the CommitLog no longer holds: its bytes are damaged or zero.",
        _COMPARE_REPLICA,
    ),
    (
        "message_disputed",
        REBUILDABLE,
        "A message and what was derived from it disagree in what no checksum covers: topic, queue, tags or keys. One is wrong.",
        "Compare this message with another copy before its queue or index file is rebuilt from it.",
    ),
    # ---- CommitLog: files -------------------------------------------------------------------------------------------
    ("segment_missing", LOSS, "No file where the neighbouring segments leave a gap.", _COMPARE_REPLICA),
    (
        "segment_wrong_size",
        LOSS,
        "A segment whose length is not the configured one.",
        "Copy the file again; most releases refuse to start with it.",
    ),
    (
        "segment_empty",
        NOTE,
        "A segment of length 0.",
        "Remove it in a repaired copy: releases before 5.1.3 refuse to start with it.",
    ),
    (
        "segment_unwritten",
        LOSS,
        "A segment, or the end of one, is all zero although a later one holds messages.",
        _COMPARE_REPLICA,
    ),
    (
        "segment_misnamed",
        LOSS,
        "A segment's name is not the physical offset at which it begins.",
        "Give the file the name that its messages ask for.",
    ),
    (
        "segment_twice",
        LOSS,
        "One segment name in two CommitLog paths; a broker loads both.",
        "Keep the one whose messages are right.",
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
        "A queue offset that no message of the CommitLog holds.",
        "Nothing, where the writer was 5.0.0 to 5.1.0; else compare with a replica.",
    ),
    (
        "queue_offset_wrong",
        LOSS,
        "A message's queue offset is out of line while its neighbours' follow one another: its header is damaged.",
        _COMPARE_REPLICA,
    ),
    (
        "queue_offset_back",
        LOSS,
        "A queue's offsets fall from one message to the next.",
        "Look at both messages; the queue offset of one is damaged or stale.",
    ),
    (
        "store_time_back",
        NOTE,
        "Store times fall from one segment to the next: a clock was set back.",
        "Know that a recovery by time may begin too late.",
    ),
    (
        "store_time_odd",
        NOTE,
        "A message's store time lies far outside of its neighbours'.",
        "Know that a recovery by time may begin at the wrong segment.",
    ),
    # ---- other copies of the same log: one code each for damage, doubt and a log that went on twice ---------------------
    (
        "replica_holds",
        NOTE,
        "Another copy of the group holds valid messages where this one has damage, zeros, or no file. What is wrong here is told"
        " by findings of its own.",
        "Take these bytes from the other copy; replicas.json has the ranges.",
    ),
    (
        "replica_disputes",
        NOTE,
        "A message that another copy holds with other bytes, both valid by every check. loss: where the form of its properties,"
        " its own queue or index entries, or most copies say that this one is wrong; else nothing tells which one is.",
        "Compare both copies' message before either is started as master.",
    ),
    (
        "replica_diverged",
        NOTE,
        "Messages in whose place another copy holds others, all valid: one copy was written to after it had been cut off.",
        "Choose a master with replicas.json, and send the other copy's messages again.",
    ),
    # ---- what a broker would do -------------------------------------------------------------------------------------
    (
        "broker_refuses",
        LOSS,
        "The release would not start on this copy.",
        "Remove the cause in a repaired copy; the plan names it.",
    ),
    ("broker_drops_messages", LOSS, "A start would cut messages that are valid in this copy.", _READ_PLAN),
    ("broker_skips_messages", LOSS, "A start would keep messages in the CommitLog but lead no consumer to them.", _READ_PLAN),
    (
        "broker_hangs",
        LOSS,
        "A start of this release would wait for ever at a gap in the CommitLog.",
        "Close the gap in a repaired copy.",
    ),
    # ---- ConsumeQueue -----------------------------------------------------------------------------------------------
    ("queue_entry_missing", REBUILDABLE, "Messages without an entry in their queue.", _REBUILD_QUEUE),
    ("queue_entry_wrong", REBUILDABLE, "An entry whose size or tags code is not its message's.", _REBUILD_QUEUE),
    ("queue_entry_shifted", REBUILDABLE, "Entries that stand at another queue offset than their messages hold.", _REBUILD_QUEUE),
    ("queue_entry_unexpected", REBUILDABLE, "Entries that lead to no message of this queue.", _REBUILD_QUEUE),
    ("queue_entry_twice", REBUILDABLE, "A second entry for a message that has one.", _REBUILD_QUEUE),
    (
        "queue_entry_beyond_end",
        REBUILDABLE,
        "Entries that lead beyond the CommitLog's end.",
        "Rebuild this queue after the CommitLog is cut where the plan says.",
    ),
    ("queue_entry_below_minimum", NOTE, "Entries of messages that retention has deleted from the CommitLog.", _NOTHING),
    (
        "queue_position_answered",
        NOTE,
        "Positions that no message holds any more, whose entries lead to the queue's next message, as a repair leaves them.",
        _NOTHING,
    ),
    ("queue_pre_blank", NOTE, "Slots before the first message of a queue that does not begin at 0.", _NOTHING),
    ("queue_zero_entry", REBUILDABLE, "Zeros between entries of a queue.", _REBUILD_QUEUE),
    (
        "queue_file_unexpected",
        REBUILDABLE,
        "A ConsumeQueue file without an entry behind one that is not full: no broker makes it.",
        "Remove it in a repaired copy: a start may count its first, empty slot as an entry.",
    ),
    ("queue_entry_invalid", REBUILDABLE, "An entry that no message writes: a negative offset or no size.", _REBUILD_QUEUE),
    (
        "queue_without_files",
        REBUILDABLE,
        "A queue's folder without any file; a broker lists it as a queue.",
        "Remove the empty folder in a repaired copy.",
    ),
    ("queue_file_missing", REBUILDABLE, "No file where a queue's neighbouring files leave a gap.", _REBUILD_QUEUE),
    ("queue_file_wrong_size", REBUILDABLE, "A ConsumeQueue file whose length is not the configured one.", _REBUILD_QUEUE),
    ("queue_file_empty", NOTE, "A ConsumeQueue file without an entry.", _NOTHING),
    (
        "queue_topic_unknown",
        NOTE,
        "A queue of a topic that config/topics.json does not name.",
        "Check config/topics.json of this copy before it is started.",
    ),
    ("queue_ext_damaged", REBUILDABLE, "A unit of a ConsumeQueueExt file is damaged.", _REBUILD_QUEUE),
    ("queue_ext_dangling", REBUILDABLE, "An entry holds the address of an ext unit that is not there.", _REBUILD_QUEUE),
    # ---- Index ------------------------------------------------------------------------------------------------------
    ("index_entry_missing", REBUILDABLE, "Keys of messages without an index entry.", _REBUILD_INDEX),
    ("index_entry_dangling", REBUILDABLE, "Index entries that lead to no message.", _REBUILD_INDEX),
    ("index_entry_wrong", REBUILDABLE, "An index entry whose hash or time is not its message's.", _REBUILD_INDEX),
    ("index_entry_duplicate", NOTE, "A message's keys put twice, as a restart does.", _NOTHING),
    (
        "index_entry_beyond_end",
        REBUILDABLE,
        "Index entries beyond the CommitLog's end; they would lead into new messages.",
        _REBUILD_INDEX,
    ),
    (
        "index_range_missing",
        REBUILDABLE,
        "Messages with keys that lie in no index file's range.",
        "Rebuild the index of this range; no release does it by itself after a clean exit.",
    ),
    ("index_header_wrong", REBUILDABLE, "An index file's header does not fit its entries.", _REBUILD_INDEX),
    ("index_chain_broken", REBUILDABLE, "An index entry's link to the previous one of its slot is wrong.", _REBUILD_INDEX),
    ("index_slot_wrong", REBUILDABLE, "A hash slot does not hold the newest entry of its chain.", _REBUILD_INDEX),
    ("index_entries_beyond_count", REBUILDABLE, "Entries behind the number that the header counts.", _REBUILD_INDEX),
    ("index_file_wrong_size", REBUILDABLE, "An index file whose length is not the configured one.", _REBUILD_INDEX),
    # ---- checkpoint, abort, config ----------------------------------------------------------------------------------
    (
        "checkpoint_missing",
        REBUILDABLE,
        "No checkpoint: a recovery after a crash reads the whole log and deletes every index file.",
        "Write one, or plan for a long first start.",
    ),
    (
        "checkpoint_damaged",
        REBUILDABLE,
        "A checkpoint field holds a value that no broker writes.",
        "Write a checkpoint that fits the log in a repaired copy; recovery begins at the wrong place until then.",
    ),
    (
        "checkpoint_zero",
        NOTE,
        "The checkpoint says that nothing was dispatched although the log holds messages.",
        "Know that a recovery after a crash reads the whole log.",
    ),
    ("checkpoint_bytes_behind", NOTE, "Bytes behind the checkpoint's known fields: of a newer release, or stray.", _NOTHING),
    (
        "index_part_flushed",
        NOTE,
        "The newest index file after an unclean exit: some of its pages are of an earlier moment.",
        _NOTHING,
    ),
    ("index_slot_overcount", NOTE, "The header counts entries instead of slots, as 4.7.0 and before did.", _NOTHING),
    (
        "checkpoint_short",
        REBUILDABLE,
        "A checkpoint file of less than 4096 bytes.",
        "Write a new one in a repaired copy.",
    ),
    (
        "checkpoint_ahead",
        REBUILDABLE,
        "A checkpoint time later than the last message's: a recovery would begin too late.",
        "Set the checkpoint back, or remove it, before a start.",
    ),
    ("checkpoint_behind", NOTE, "A checkpoint time earlier than the data: a recovery reads more than it must.", _NOTHING),
    (
        "checkpoint_offset_beyond_end",
        REBUILDABLE,
        "A checkpoint's physical offset lies beyond the CommitLog's end.",
        "Write a new checkpoint in a repaired copy.",
    ),
    (
        "consumer_offset_beyond_end",
        LOSS,
        "A consumer group stands beyond the queue's new end: it would miss or repeat messages.",
        "Reset this group's offset after the start.",
    ),
    (
        "delay_offset_beyond_end",
        LOSS,
        "A delay level's offset lies beyond its queue's new end.",
        "Correct config/delayOffset.json before the start.",
    ),
    (
        "config_damaged",
        REBUILDABLE,
        "A file in config/ cannot be read as what a broker writes.",
        "Restore it from its .bak or from another broker of the cluster.",
    ),
    ("setting_mismatch", NOTE, "A setting does not fit the files of this copy.", "Pass the broker's own broker.conf."),
    # ---- the copy as a whole ----------------------------------------------------------------------------------------
    ("file_unrecognised", NOTE, "A name that no release writes here.", _NOTHING),
    (
        "file_not_regular",
        NOTE,
        "A link that leads out of the store, a device, socket or pipe: not opened.",
        "Copy the file itself.",
    ),
    (
        "file_unreadable",
        NOTE,
        "A file that could not be read; the audit is incomplete.",
        "Make it readable and run the audit again.",
    ),
    (
        "queues_copied_later",
        REBUILDABLE,
        "The ConsumeQueues know messages behind the CommitLog's end: they were copied after it, while the broker ran.",
        "Copy again from a stopped broker; where its machine lost power, compare with a replica.",
    ),
    (
        "live_copy",
        NOTE,
        "The copy looks as if taken from a running broker: its parts are of different moments.",
        "Copy again from a stopped broker for an exact answer.",
    ),
)

CATALOGUE: dict[str, FindingCode] = {row[0]: FindingCode(*row) for row in _ROWS}

STOP_REASONS: dict[str, str] = {
    # The record itself (the checks of recovery.md 3).
    "no_room": "Fewer bytes are left in the segment than a size and a magic need.",
    "size_beyond_file": "The record says that it is larger than what is left of the segment.",
    "field_beyond_file": "A field of the record leads beyond the segment.",
    "field_beyond_record": "A field of the record says that it is larger than the record.",
    "unwritten": "Size and magic are zero: nothing was written here.",
    "magic": "The magic is none that this release knows.",
    "negative_size": "The record's size is negative.",
    "body_crc": "The body's checksum does not fit.",
    "topic_length": "The topic's length is negative.",
    "dup_info": "duplicationEnable is on and the record has no DUP_INFO of two parts.",
    "delay": "The record is a delayed one and its DELAY is no number.",
    "property_crc_missing": "forceVerifyPropCRC is on and the record has no property CRC.",
    "property_crc": "The property CRC does not fit.",
    "size_mismatch": "The record's size is not what its fields add up to.",
    "inner_batch": "INNER_NUM or INNER_BASE is no number.",
    "phy_offset": "The record stores another physical offset than its position.",
    # Where no record is at fault.
    "filler": "An end-of-segment filler.",
    "empty": "The segment holds no bytes.",
    "no_commitlog": "There is no segment at all.",
    "end_of_last_file": "The last segment was read to its end.",
    "outside_file": "checkCommitLogOffsetOnRecover is on and the record stores a physical offset outside of its segment.",
}
"""Why a broker's scan of the CommitLog ends: the values of plan.json's `stop_reason` and of the segments' rows."""

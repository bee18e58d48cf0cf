"""The words for what to do next. Each step has one sentence here, or in the catalogue if it is one code's alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schemas.advice import Advice, Overwritten, Step
from schemas.finding_codes import CATALOGUE, SETTING_OF_STOP, Code
from store_io.base.wording import count_text, seen

_OTHER_COPY = "Look for these bytes in another copy of the same broker"
_LAST_MESSAGE = "The broker stopped cleanly, so a whole message was here: look for it in another copy of the same broker"
_SEGMENT = "Look for this segment in another copy of the same broker"
_OWN_CONF = "Find this store's own broker.conf and audit again."
_BEFORE = "before any start: one that fails here overwrites other files in config/"
_RESTORE = "Restore it from a backup or from another broker of the cluster"
_NO_BACKUP = "there is no .bak that can be used."

LACKS_OF_SETTING = dict(zip(SETTING_OF_STOP.values(), ("DUP_INFO", "property CRC"), strict=True))


def advice_text(advice: Advice) -> str:
    """Return the sentences on what to do."""
    words = _WORDS[advice.step]
    return words(*advice.values) if callable(words) else words.format(*advice.values)


def next_text(advice: Advice | None) -> str:
    """Return the sentences on what to do; "" without advice."""
    return advice_text(advice) if advice is not None else ""


def _before_a_start(over: str, setting: str | int) -> str:
    other = f"; or, if the broker ran with {setting}, correct broker.conf" if setting else ""
    return f"Before a start {over}{other}."


def _take_over(setting: str | int, other: str = "") -> str:
    return _before_a_start(f"repair this copy with --fix-config, which takes them over{other}", setting)


def _raise_counter(setting: str | int, copied: str | int, path: str | int, counter: str | int) -> str:
    first = f"copy {copied} to {path}, and " if copied else ""
    over = f"{first}set the counter in the dataVersion of {path} to {counter}: a start takes the file in then alone"
    return _before_a_start(over, setting)


def _copy_database(setting: str | int, folder: str | int) -> str:
    over = f"copy {folder}/ of this broker back, or make topics and groups again with mqadmin after a start"
    return _before_a_start(over, setting)


def _correct_names(*names: str | int) -> str:
    correct = " and ".join(f"{meant} in place of {named}" for meant, named in zip(names[::2], names[1::2], strict=True))
    return f"Correct the name in broker.conf, {correct}, and audit again."


def _fix_offsets(offsets: str | int, groups: str | int) -> str:
    lie = "lies past the new queue end" if offsets == 1 else "lie past the new queue ends"
    return f"{count_text(int(offsets), 'offset')} of {count_text(int(groups), 'group')} {lie}: repair with --fix-offsets."


def _read_with_lines(folder: str | int, *lines: str | int) -> str:
    return (
        f"Put {' and '.join(map(str, lines))} into broker.conf, with the other lines of that mode as this broker had them, and"
        f" audit again. If nobody needs the messages in {folder}/ any more, move {folder}/ out of the copy and audit again."
    )


def _split_segments(written: str | int, now: str | int) -> str:
    return (
        f"Best keeps all messages: in a copy split each file of commitlog/ into pieces of {written} bytes, each named after the"
        f" physical offset at which it begins, set mappedFileSizeCommitLog={written} in place of {now} in broker.conf, and audit"
        " that. A slave's size must be its master's."
    )


def _switch_off(setting: str | int) -> str:
    return (
        f"First set {setting}=false in broker.conf and audit again: messages that were written before it was switched on lack the"
        f" {LACKS_OF_SETTING[str(setting)]} that it asks for, and a start with it cuts them. Start without it if that audit finds"
        " nothing else."
    )


_OVERWRITTEN = {
    Overwritten.ALL_TABLES: "topics, groups, offsets and filters, and the second one starts without them",
    Overwritten.DELAY_OFFSETS: "the offsets of delay levels",
    Overwritten.FILTERS: "config/consumerFilter.json",
    Overwritten.OFFSETS: "consumer offsets and filters, the second one their .bak too",
}


def _refused(step: str) -> Callable[[str | int], str]:
    return lambda tables: f"{step}, {_BEFORE}: {_OVERWRITTEN[Overwritten(str(tables))]}."


def _absent(absent: str | int, unknown: str | int) -> str:
    return f"{absent} is not in this copy: copy it from the broker, or a start knows no {unknown}."


def _copy_log(place: str | int) -> str:
    folder = place or "the folder of the CommitLog"
    return f"Copy {folder} from the broker's machine as well, and name that copy with --commitlog."


def _later(number: str | int) -> str:
    return count_text(int(number), "later message")


def _messages(number: str | int) -> str:
    return count_text(int(number), "message")


def _holds(holder: str | int, lacks: str | int) -> str:
    return f"{holder}, which holds {_messages(lacks)} that this copy lacks"


def _take_table(file: str | int, holder: str | int, lacks: str | int, noun: str | int) -> str:
    what = f"what {file} of {holder} shows" if str(file).endswith("/") else f"{file} of {holder}"
    why = f"this copy lacks {count_text(int(lacks), str(noun))} of those in it" if lacks else "it has the greater offsets"
    return f"Take {what} first, before this copy becomes master: {why}."


def _put_together(what: str | int, *places: str | int) -> str:
    files = " and ".join(f"{file} of {holder}" for file, holder in zip(places[::2], places[1::2], strict=True))
    return f"Before this copy becomes master, put together {what} from its own table and {files}."


def _send_again(number: str | int, at_least: str | int) -> str:
    return (
        f"Send again {'at least ' if at_least else ''}{_messages(number)} that this copy shows and does not hold, unless a step"
        " above has brought them: their producers may still have them."
    )


def _create_topic(topic: str | int, read: str | int, write: str | int, shown_by: str | int, attributes: str | int) -> str:
    queues = count_text(int(write), "queue") if read == write else f"{read} read queues and {write} write queues"
    kind = f" and the attribute {attributes}" if attributes else ""
    name = seen(str(topic))
    return f"Once it is started and before clients come, create topic {name} with {queues}{kind}, as {shown_by} has it."


def _keep_segments(
    at: str | int, soon: str | int, later: str | int, messages: str | int, timers: str | int, when: str | int, begins: str | int,
    zone: str | int, now: str | int, hours: str | int, by_disk: str | int,
) -> str:  # fmt: skip
    parts = [f"{count_text(int(soon), 'segment')} within minutes"] if soon else []
    hour = f"from {_moment(begins)} on, in the hour of deleteWhen={when} if the JVM's time zone is {zone}"
    parts += [f"{count_text(int(later), 'segment')} {hour}"] if later else []
    early = f", among them {count_text(int(timers), 'timer message')} before the time of delivery" if timers else ""
    held = f" ({_messages(messages)}{early})" if messages else ""
    does = f"If the broker starts {_moment(at)}, it deletes by itself {' and '.join(parts)}{held}"
    disk = (
        " The disk is too full, and age does not count then: free it first, or set cleanFileForciblyEnable=false."
        if by_disk
        else ""
    )
    keeps = f" Set fileReservedTime={hours} in place of {now} in broker.conf to keep them for a week." if hours else ""
    return f"{does}.{disk}{keeps}"


def _groups_read(group: str | int, topic: str | int, queue: str | int, messages: str | int, others: str | int) -> str:
    more = f"; {count_text(int(others), 'other queue')} of groups lose messages so, too" if others else ""
    has_not = (
        f"Group {seen(str(group))} has not consumed {_messages(messages)} of these, of topic {seen(str(topic))}, queue {queue}"
    )
    return f"{has_not}{more}. Keep the segments as said until it has: mqadmin consumerProgress then shows no difference."


def _start_before(number: str | int, at: str | int, before: str | int) -> str:
    if not number:
        return f"Start before {_moment(before)}: from then on a start never delivers timer messages that wait in this copy."
    lost = f"a start {_moment(at)} never delivers {count_text(int(number), 'timer message')}, whose time is too long ago"
    if not before:
        return f"Be ready: {lost}."
    if str(before) <= str(at):
        return f"Only a start before {_moment(before)} would have delivered all timer messages: {lost}."
    return f"Start before {_moment(before)}: after that more timer messages are never delivered. Already, {lost}."


def _moment(iso: str | int) -> str:
    return f"{str(iso)[:16].replace('T', ' ')} UTC"


EMPTIED = "commitlog/, consumequeue/, index/, checkpoint, and epochFileCheckpoint with its .bak"
_NO_MORE = "The copy is as it was"

_WORDS: Mapping[Step, str | Callable[..., str]] = {
    Step.OF_CODE: lambda code: str(CATALOGUE[code].step),
    Step.RAISED_OF_CODE: lambda code: str(CATALOGUE[code].raised_step),
    Step.NOTHING: "Nothing to do.",
    Step.REBUILD_QUEUE: "Rebuild this queue from the CommitLog: a repair does it.",
    Step.REBUILD_DATABASE: "Rebuild this database from the CommitLog: a repair does it.",
    Step.REBUILD_OTHER_KIND: "Repair this copy: a repair rebuilds this kind of queues. Until then let no broker serve consumers"
    " from it; the other kind is right.",
    Step.REBUILD_INDEX: "Rebuild this index file from the CommitLog: a repair does it. Lookups by key are wrong until then.",
    Step.REBUILD_TABLES: "Repair this copy: a repair rebuilds index and transactions in rocksdbstore/ from the CommitLog.",
    Step.REBUILD_TIMERS: "Repair this copy: a repair rebuilds the timer's files, and a start then delivers once what is not"
    " delivered yet.",
    Step.WRITE_CHECKPOINT: "Repair this copy: a repair writes a new checkpoint.",
    Step.WRITE_EPOCHS: "Repair this copy: a repair writes an epoch file with the epochs that fit its log.",
    Step.SALVAGE: "Run the repair that the audit recommends before a start: of all repairs it keeps most of these messages.",
    Step.LEAVE_OUT: "Repair this copy: a repair leaves out what no broker writes.",
    Step.REMOVE_FILE: "Look at this file. A repair removes it: repair this copy before a start.",
    Step.CORRECT_OFFSETS: "Repair this copy with --fix-offsets: it sets the offset back to the queue's new end.",
    Step.FIX_OFFSETS: _fix_offsets,
    Step.OTHER_COPY: f"{_OTHER_COPY}; a repair takes them with --donor.",
    Step.OTHER_COPY_OR_HEAL: f"{_OTHER_COPY}; a repair takes them with --donor. explain says whether one change makes a damaged"
    " record whole; a repair makes it with --heal.",
    Step.OTHER_COPY_ALONE: f"{_OTHER_COPY}.",
    Step.SEEK_LAST_MESSAGE: f"{_LAST_MESSAGE}; a repair takes it with --donor.",
    Step.SEEK_LAST_MESSAGE_ALONE: f"{_LAST_MESSAGE}.",
    Step.SEEK_SEGMENT: f"{_SEGMENT}; a repair takes it with --donor where others follow it here.",
    Step.SEEK_SEGMENT_ALONE: f"{_SEGMENT}.",
    Step.SEEK_LOG_END: "The end of the log is gone, and no repair adds it, not with a donor either: where another copy of this"
    " broker has it, audit that copy and use it instead.",
    Step.SEEK_INDEXED_MESSAGES: "Keep rocksdbstore/: its entries name lost messages. Look for the log's bytes in another copy.",
    Step.SEEK_HEADERS: "Look for these messages in another copy of the same broker: their headers differ from what was indexed.",
    Step.LOOK_AT_ORIGIN: "Look at the message at physical offset {0}: the damage came from there.",
    Step.LOOK_AT_FOLDER: "If this folder is only not mounted, or its path is wrong, mend that and audit again. Else copy the"
    " store again, or take another copy of the same broker.",
    Step.COPY_AGAIN_IF_LIVE: "If this was copied while the broker ran, stop the broker and copy again. If its machine lost power,"
    " compare with a replica.",
    Step.NO_LEDGER_REPAIR: "No repair writes the log of one node of a DLedger group: compare committedIndex of all copies, then"
    " empty this node's store and let it copy the log from the others.",
    Step.NO_COMPACTED_REPAIR: "No repair is written for a store with the log of a compacted topic: look for another copy of the"
    " same broker.",
    Step.NO_DOUBLE_WRITE_REPAIR: "No repair is written for a store that writes its queues twice, in files and in RocksDB,"
    " together with {0}: look for another copy of the same broker.",
    Step.NO_DATABASE_REPAIR: "No repair makes {0}/ anew: restore the folder from a backup of this broker. Or move the folder out"
    " of the copy and audit again: a start then makes an empty database, without any {1}.",
    Step.NO_QUEUE: "No queue can take these messages, after a start or a repair: list them with query, and send them again under"
    " another topic.",
    Step.STARTS_DISPATCH: "Nothing by hand: a start of the release puts these entries.",
    Step.SWITCHED_ON_LATER: "Nothing, where the index was switched on later or retention removed these; else move rocksdbstore/"
    " out of a copy of the store and repair that: a repair rebuilds it.",
    Step.ENDED_BY_PRODUCERS: "Nothing, where producers end their transactions themselves.",
    Step.ASKED_AGAIN: "Nothing, where producers answer to questions about transactions that are done.",
    Step.INDEX_AHEAD: "Nothing to do: after a power loss the index may be ahead of the log.",
    Step.TRANSACTIONS_AHEAD: "Nothing to do: after a power loss RocksDB may be ahead of the log.",
    Step.UNUSED_TABLE: "Nothing: a broker that was killed may leave a table that it was writing, or that it no longer used.",
    Step.CORRECT_LINE: "Correct this line of broker.conf, the copy is not at fault: {0}.",
    Step.ADD_LINE: "Add the line {0}=... to broker.conf, as this broker had it, and audit again: the copy is not at fault.",
    Step.READ_WITH_LINES: _read_with_lines,
    Step.SWITCH_OFF: _switch_off,
    Step.OWN_CONF: _OWN_CONF,
    Step.OWN_CONF_OR_NONE: f"{_OWN_CONF} Without --broker-conf the audit takes sizes from the files; a broker that starts with"
    " this broker.conf does not.",
    Step.CORRECT_NAMES: _correct_names,
    Step.NAME_CONF: "Name this broker's own settings with --broker-conf and audit again: they decide which of the two a start"
    " reads.",
    Step.MAKE_MASTER: "If its master's copy can be had, start that. To make this copy a master, change {0} in broker.conf to"
    " brokerRole=ASYNC_MASTER (or SYNC_MASTER) and brokerId=0, and audit again with these lines before a start. Of two"
    " lines with one key the last counts. The old master must not run beside it.",
    Step.ROCKSDB_TIMERS: "Set timerRocksDBEnable=true in broker.conf, for RocketMQ 5.4.0 or later, and audit again: the timers"
    " lie in rocksdbstore/.",
    Step.SPLIT_SEGMENTS: _split_segments,
    Step.NEW_NAME: "If it was meant to begin again, give the store another name.",
    Step.RESTORE: f"{_RESTORE}: {_NO_BACKUP}",
    Step.RESTORE_OR_FIX: f"{_RESTORE}, or repair this copy with --fix-config, which writes what the log and other files show:"
    f" {_NO_BACKUP}",
    Step.RESTORE_TABLES: "Restore {0}/ from a backup, or from another broker of the cluster, before a start: a repair does not"
    " rebuild it.",
    Step.RESTORE_TOPICS: "Restore config/topics.json before a start, or repair this copy with --fix-config: a repair without it"
    " turns this topic's queues into ordinary ones.",
    Step.RESTORE_REFUSED: _refused("Restore the file or its .bak, or set both aside"),
    Step.RESTORE_REFUSED_ALONE: _refused("Restore the file itself, as its .bak is not read in its place, or set both aside"),
    Step.COPY_REFUSED_BACKUP: _refused("Copy its .bak over the file, as this start does not take the .bak itself"),
    Step.REMOVE_COUNTERS: "Remove {0} and its .bak from the copy before a start, or repair with --fix-config, which does it: they"
    " hold nothing but counters of timers, and a broker begins these anew.",
    Step.COPY_BACKUP_FIRST: "Copy the .bak over the file before a start: the first write after a start puts the damaged file over"
    " this .bak, the only good one.",
    Step.CREATE_TOPICS_DELETE_NONE: f"{CATALOGUE[Code.TOPIC_NOT_IN_TABLE].step} Until then delete no topic: this release deletes"
    " the queues of all unknown topics with it.",
    Step.CREATE_IF_NOT_DELETED: "If one of these topics was not deleted on purpose, create it again with mqadmin updateTopic.",
    Step.OLDER_LIGHT_OFFSETS: "No repair helps with this release. Start 4.9.4 or a later one with these settings, or keep a copy"
    " of config/: 4.9.3 writes its own offsets over the file within seconds.",
    Step.TAKE_OVER: _take_over,
    Step.TAKE_FORM: "Before a start repair this copy with --fix-config, which takes {0}: it shows more than what a start takes.",
    Step.TAKE_OVER_OR_COPY: lambda setting, copied, path: _take_over(setting, f", or copy {copied} to {path}"),
    Step.TAKE_OVER_OR_EXPORT: lambda setting: _take_over(setting, ", or export them with mqadmin rocksDBConfigToJson"),
    Step.RAISE_COUNTER: _raise_counter,
    Step.COPY_DATABASE: _copy_database,
    Step.SET_COMPACTED_ASIDE: "Nothing rebuilds it by itself. Where the CommitLog still holds all messages, do as"
    " docs/kinds/compaction.md 6 says; else compare with another copy of this broker.",
    Step.SET_REPLACED_ASIDE: "Set this file aside before a start: a compaction has replaced it, and all other files of the queue"
    " agree without it.",
    Step.SEE_COMPACTED: f"See {Code.COMPACTED_FILES_DIFFER} of the same file.",
    Step.NAME_RELEASE: "Name the release with --release; no repair command is shown for an assumed one.",
    Step.NAME_KNOWN_RELEASE: "Name a known release with --release; no repair command is shown for one that is not known.",
    Step.AUDIT_WITH_OWN: "Audit again with this store's own release and broker.conf; no repair command is shown for those that do"
    " not fit it.",
    Step.NO_MESSAGE_LEFT: "No repair brings back what is gone: this copy holds no message to repair from.",
    Step.NO_REPAIR_MENDS: "No repair changes what was found here.",
    Step.NO_REPAIR_GOES: f"No repair goes: {{0}}. {_NO_MORE}.",
    Step.NO_REPAIR_OTHER_COPY: f"No repair goes: {{0}}. {_NO_MORE}; look for another copy of this broker.",
    Step.NO_REPAIR_NAME_DONOR: f"No repair goes: {{0}}. {_NO_MORE}; look for another copy of this broker, and name one with"
    " --donor.",
    Step.CHECK_PATH: "Check the path: it must be the folder that holds commitlog/, and it must be readable. Then audit again.",
    Step.CORRECT_ARGUMENTS: "Correct the option or the row of the fleet file that the verdict names, and audit again.",
    Step.AUDIT_AGAIN: "Audit again: this audit ended before it had read the copy.",
    Step.STOP_USER: "{0}",
    Step.STOP_BROKER: "If the broker runs, stop it. If it does not run, do not start it.",
    Step.COPY_LOG: _copy_log,
    Step.COPY_WHOLE: "Copy the whole store again from where it came, into a new folder, before anybody starts that broker: what"
    " is gone from this copy may still be there.",
    Step.COPY_CONFIG: _absent,
    Step.WROTE: "Name the broker's own release with --release and audit again: by its files RocketMQ {0} wrote this copy.",
    Step.SET_LINE: "{0}.",
    Step.NAME_OWN_CONF: "To be sure, name its broker.conf with --broker-conf and audit again.",
    Step.SEEK_TABLES: "If config/ is gone, take it from a backup or from another broker of the cluster.",
    Step.MASTER_INSTEAD: lambda holder, lacks: f"Start {_holds(holder, lacks)}, as master, and make this copy a slave of it.",
    Step.MASTER_INSTEAD_OF_REFUSED: lambda holder, lacks: f"Start {_holds(holder, lacks)}, as master.",
    Step.EMPTY_THIS: f"Before this copy becomes a slave of {{0}}, empty it ({EMPTIED}; config/ stays): by its epochs it would"
    " never copy anything.",
    Step.EMPTY_OTHER: f"Before {{0}} becomes a slave of this copy, empty that one ({EMPTIED}; config/ stays): by its epochs it"
    " would never copy anything.",
    Step.COPY_COMPACTED: "Copy compaction/ from the broker's machine, if it has that folder.",
    Step.TAKE_OFFSETS: "If another copy of this broker can be had, take config/consumerOffset.json from there.",
    Step.SET_OFFSETS: "If config/ could not be had, set the offsets of groups with mqadmin resetOffsetByTime before consumers"
    " come: without that they begin at the end and miss what they had not consumed.",
    Step.SAVE_FROM: lambda holder, holds: (
        f"Save what {holder} alone holds, {_messages(holds)}, before this copy becomes master: replicas.json has the ranges."
    ),
    Step.COMPARE_DIVERGED: lambda other, lacks: (
        f"Compare this copy with {other}, which holds {_messages(lacks)} that this copy lacks, before either becomes master:"
        f" replicas.json has what each of them lacks. First save what {other} alone holds, as lines to send again."
    ),
    Step.COMPARE_FORMS: lambda other, number: (
        f"Compare {_messages(number)} in which this copy and {other} differ, by replicas.json, before either is master."
    ),
    Step.ONLY_IF_LATER_ONE_IS_GONE: lambda holder, later: (
        f"Start this copy as master only if {holder}, which holds {_later(later)}, cannot be used."
    ),
    Step.TAKE_TABLE: _take_table,
    Step.PUT_TOGETHER: _put_together,
    Step.DO_NOT_START: "Do not start this copy: a start deletes queues and index files that still show which messages existed.",
    Step.START: "Start RocketMQ {0} on this copy: it loses nothing.",
    Step.START_JUDGED: "Start RocketMQ {0} on this copy: it loses nothing of what was judged.",
    Step.START_MENDING: "Start RocketMQ {0} on this copy: it loses no message that the copy holds, and mends what differs.",
    Step.START_DAMAGED: "Start RocketMQ {0} on this copy: it loses no message that the copy still holds. What is damaged or"
    " missing stays so.",
    Step.START_ONCE: "Start RocketMQ {0} on this copy, once all above is seen to: then it loses nothing.",
    Step.START_ALL_BUT: "Start RocketMQ {0} on this copy: it loses nothing but these timer messages.",
    Step.START_NEW_STORE: "Start RocketMQ {0} on the repaired store, never on this copy.",
    Step.START_COPY: "Audit what the steps above have made, and start RocketMQ {0} on it if its answer is start.",
    Step.START_CHANGED: "Audit again with what was changed, and start RocketMQ {0} if the answer is start.",
    Step.START_OTHER: "Start RocketMQ {0} on the copy that holds most, once the steps above are done.",
    Step.CHECK_LOG_END: lambda end: (
        f"Check after the start that commitLogMaxOffset of mqadmin brokerStatus is no less than {end}: less means that the start"
        " has cut the log."
    ),
    Step.CHECK_NEW_STORE: "Go through the checks of the hand-over page, which the repair writes beside the new store.",
    Step.SEND_AGAIN: _send_again,
    Step.SEND_TIMERS: lambda number: (
        f"Send again {count_text(int(number), 'timer message')} that the start passes over: query shows those of topic"
        " rmq_sys_wheel_timer."
    ),
    Step.SEND_GIVEN_UP: lambda number, more: (
        f"Send again what the repair gives up, {'at least ' if more else ''}{_messages(number)}: the files beside the new store"
        " name them."
    ),
    Step.SEND_ONLY_OTHERS: lambda sender, number, master: (
        f"Once {master} is master, send again what {sender} alone holds, {_messages(number)}: examples/resend sends what query"
        " --only-here has listed, each message once."
    ),
    Step.CREATE_TOPIC: _create_topic,
    Step.CREATE_MORE: lambda number, file: f"Create {count_text(int(number), 'further topic')} likewise: {file} has them.",
    Step.SET_GROUP: lambda group: (
        f"Once it is started and before consumers come, set the offsets of group {seen(str(group))} for each TOPIC that it"
        " consumes, to a TIME up to which it had consumed all, as 2026-11-20#21:20:22:500."
    ),
    Step.SET_MORE: lambda number: f"Set the offsets of {count_text(int(number), 'further group')} likewise.",
    Step.KEEP_SEGMENTS: _keep_segments,
    Step.LET_GROUPS_READ: _groups_read,
    Step.START_BEFORE: _start_before,
    Step.DECIDE_HALF_MESSAGES: lambda number: (
        f"At its first check the broker gives up {count_text(int(number), 'half message')}, too old or checked too often: set"
        " fileReservedTime above their age, or send them again from their producers."
    ),
    Step.LEVELS_STAND_STILL: "At delay level {0} the broker tries a message without a body without end, and delivers nothing"
    " after it: send what waits there again.",
    Step.MORE_STEPS: lambda number: f"And {count_text(int(number), 'more step')} like these: findings.jsonl has all.",
    Step.REMOVE_CRASH_MARKS: "Remove abort and {0} from the copy before a start: it then cuts nothing and dispatches all of the"
    " log.",
}

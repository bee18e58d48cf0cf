"""Names and lengths of the files of queues: what no broker makes, wrong lengths, gaps (pitfalls C6 to C10)."""

from __future__ import annotations

from schemas.finding_codes import Code
from schemas.layouts.store_names import BATCH_QUEUES, EXT, QUEUES
from schemas.rows import Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.java.java_compat import parse_number
from store_io.broker.loading import Tree, is_folder, is_skipped
from store_io.broker.releases import BrokerRules
from store_io.model.facts.named_files import name_fault, size_finding, unrecognised
from store_io.rocksdb.private_folder import is_database, is_database_name
from store_io.source.byte_source import name_of
from store_io.source.store_dir import UNREAD_KINDS


def topic_names(tree: Tree, rules: BrokerRules) -> list[Finding]:
    """Return the findings on all folders of topics; none if queues are in RocksDB alone."""
    found: list[Finding] = []
    if rules.rocksdb_queues:
        return found
    for kind, size in ((QUEUES, rules.queue_file_bytes), (BATCH_QUEUES, rules.batch_file_bytes), (EXT, rules.ext_file_bytes)):
        if is_database([name_of(entry.path) for entry in tree.children(kind)]) and not rules.value("rocksdbCQDoubleWriteEnable"):
            message = "a database of queues in RocksDB, which a broker with queues in files leaves alone"
            found.append(Finding(Code.FILE_UNRECOGNISED, kind, message=message))
        for topic in tree.children(kind):
            if topic.kind in UNREAD_KINDS or not is_folder(topic) and is_database_name(name_of(topic.path)):
                continue
            if not is_folder(topic):
                found.append(unrecognised(topic, "a file where topics' folders lie", skipped=True))
                continue
            for child in tree.children(topic.path):
                if child.kind in UNREAD_KINDS:
                    continue
                if parse_number(name_of(child.path), 32) is None:
                    found.append(unrecognised(child, "its name is no queue id", skipped=True))
                elif not is_folder(child):
                    found.append(unrecognised(child, "a file where a queue's folder is expected"))
                else:
                    found += _queue_names(tree, child.path, size, kind, rules)
    return found


def _queue_names(tree: Tree, folder: str, size: int, kind: str, rules: BrokerRules) -> list[Finding]:
    found: list[Finding] = []
    expected: int | None = None
    files = 0
    for entry in tree.children(folder):
        start = parse_number(name_of(entry.path), 64)
        unread = entry.kind in UNREAD_KINDS
        if unread and (start is None or start < 0):
            continue
        if is_folder(entry) or start is None or start < 0:
            why = "a directory among the queue's files" if is_folder(entry) else name_fault(start)
            found.append(unrecognised(entry, why, is_skipped(entry, rules)))
            continue
        files += 1
        if entry.size == 0 and not unread:
            found.append(size_finding(Code.QUEUE_FILE_EMPTY, entry, size, severity_in(Code.QUEUE_FILE_EMPTY, Case.IN_THE_WAY)))
            continue
        if entry.size != size and not unread:
            found.append(size_finding(Code.QUEUE_FILE_WRONG_SIZE, entry, size))
        if expected is not None and start != expected:
            found.append(Finding(Code.QUEUE_FILE_MISSING, f"{folder}/{expected:020d}", message="a gap in the queue's files"))
        expected = start + size
    if not files and kind != EXT and not found:
        found.append(Finding(Code.QUEUE_WITHOUT_FILES, folder, message="an empty folder, which a broker lists as a queue"))
    return found

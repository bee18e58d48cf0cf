"""Messages in a log that a start under the named settings does not read: they are counted, and the copy is not safe to start."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from jobs.report.texts.next_steps import shown_steps
from schemas.answer import StepName
from schemas.finding_codes import Code
from store_io.answer.headline import judge
from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.outcome.safety import Safety, Start, decide
from store_io.source.byte_source import StoreLocation
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.damage import overwrite
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.dledger_stores import CONF, FOLDER, HEADER, SIZES, LedgerBuilder, build, header, mixed

RELEASE = "5.3.3"
SIZE_LINES = StoreBuilder(RELEASE, SIZES).broker_conf()


def unread_of(audited: Audited) -> list[tuple[str, int, str | None]]:
    return [(f.file, f.count, f.actual) for f in audited.findings if f.code == Code.MESSAGES_NOT_READ]


def grown(root: Path, messages: int, node: str = "n0", body: bytes = b"body") -> None:
    """Only the data files of a node's log."""
    builder = LedgerBuilder(RELEASE)
    for number in range(messages):
        builder.put(Message("Topic0", 0, body * 9, uniq=f"7F00{number:08X}"))
    for base, data in builder.files.items():
        path = root / f"dledger-{node}" / "data" / f"{base:020d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(data))


@pytest.mark.parametrize("mode", ["", "enableControllerMode=true\n"])
def test_without_the_lines_of_dledger_a_start_empties_the_queues(tmp_path: Path, mode: str) -> None:
    store = build(tmp_path)
    audited = product.audit(store.root, RELEASE, SIZE_LINES + mode)
    assert unread_of(audited) == [(FOLDER, 40, "enableDLegerCommitLog=false")]
    assert audited.outcome.exit_code == 20 and audited.outcome.complete and audited.broker is not None
    assert audited.broker["starts"] and audited.broker["truncate_at"] == 0
    queues = [path.relative_to(store.root).as_posix() for path in store.root.glob("consumequeue/*/*/*")]
    assert sorted(audited.broker["deleted_files"]) == sorted(queues) != []
    assert all(queue["max_offset"] == 0 for queue in audited.broker["after_dispatch"]["queues"])
    assert all(setting["from"] != "inferred" for setting in audit_plan(audited.outcome)["settings"].values())
    decision = decide(audited.outcome)
    assert (decision.start, decision.safety) == (Start.AGAINST_SETTINGS, Safety.STOP)
    said = judge(audited.outcome).headline
    assert said == (
        "Do not start this copy with enableDLegerCommitLog=false: 40 messages in dledger-n0/ are not read without"
        " enableDLegerCommitLog=true and dLegerSelfId=n0"
    )
    gone = {Code.SEGMENT_MISSING, Code.COMMITLOG_EMPTIED, Code.COMMITLOG_EMPTY, Code.MESSAGE_LOST}
    assert not gone & {f.code for f in audited.findings} and not audited.outcome.whole.missing
    steps = shown_steps(audited.outcome, (str(store.root),), "plan.json")
    change = next(step.text for step in steps if step.name == StepName.CHANGE)
    assert "dLegerSelfId=n0 into broker.conf" in change and StepName.REPAIR not in {step.name for step in steps}


def test_with_the_lines_of_dledger_or_without_a_broker_conf_nothing_is_left_out(tmp_path: Path) -> None:
    store = build(tmp_path)
    for conf in (store.broker_conf, None):
        audited = product.audit(store.root, RELEASE, conf)
        assert unread_of(audited) == [] and audited.outcome.exit_code == 0


@pytest.mark.parametrize("messages", [0, 1, 2])
def test_messages_of_an_unread_log_are_counted_and_an_empty_one_is_none(tmp_path: Path, messages: int) -> None:
    grown(tmp_path, messages)
    (tmp_path / "commitlog").mkdir()
    if not messages:
        path = tmp_path / FOLDER / "data" / f"{0:020d}"
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(SIZES.segment))
    audited = product.audit(tmp_path, RELEASE, SIZE_LINES)
    assert unread_of(audited) == [(FOLDER, messages, "enableDLegerCommitLog=false")] * bool(messages)
    are = "is" if messages == 1 else "are"
    assert all(f" {are} not read without " in f.message for f in audited.findings if f.code == Code.MESSAGES_NOT_READ)
    assert audited.outcome.exit_code == (20 if messages else 0)


def test_a_damaged_message_and_leftovers_of_a_cut_do_not_count(tmp_path: Path) -> None:
    store = build(tmp_path, messages=34)
    entry, last = store.entries[3], store.entries[-1]
    store.flip(store.data_of(entry), entry.at % SIZES.segment + HEADER + 90)  # a byte of its body
    at = store.end + 30
    stale = bytearray(header(last.record.size, last.index - 1, 1, at) + last.data[HEADER:])
    stale[HEADER + 28 : HEADER + 36] = struct.pack(">q", at + HEADER)
    overwrite(store.data(), at % SIZES.segment, stale)
    assert unread_of(product.audit(store.root, RELEASE, SIZE_LINES))[0][1] == 33


def test_a_quick_audit_says_the_bytes_and_no_number(tmp_path: Path) -> None:
    store = build(tmp_path)
    outcome = run_local(AuditRequest("store", StoreLocation(str(store.root)), RELEASE, SIZE_LINES, level="quick"))
    (found,) = [f for f in outcome.found.findings if f.code == Code.MESSAGES_NOT_READ]
    size = sum(path.stat().st_size for path in (store.root / FOLDER / "data").iterdir())
    assert f"{size:,} bytes, which were not counted, in dledger-n0/" in found.message and outcome.exit_code == 20


def test_the_log_of_another_node_alone_is_not_read(tmp_path: Path) -> None:
    store = build(tmp_path)
    (store.root / FOLDER).rename(store.root / "dledger-n1")
    audited = product.audit(store.root, RELEASE, store.broker_conf)
    assert unread_of(audited) == [("dledger-n1", 40, "dLegerSelfId=n0")] and audited.outcome.exit_code == 20
    assert "without dLegerSelfId=n1" in judge(audited.outcome).headline


@pytest.mark.parametrize(
    ("own", "other", "body", "unread"),
    [
        (12, 12, b"body", 0),
        (12, 11, b"body", 0),
        (11, 12, b"body", 1),
        (5, 30, b"body", 25),
        (30, 5, b"body", 0),
        (12, 12, b"else", 12),
    ],
)
def test_beside_the_nodes_own_log_only_what_that_lacks_counts(
    tmp_path: Path, own: int, other: int, body: bytes, unread: int
) -> None:
    """Two logs of one group are the same up to an entry that both hold; a log of the same lengths and other messages is not."""
    grown(tmp_path, own)
    grown(tmp_path, other, "n1", body)
    audited = product.audit(tmp_path, RELEASE, SIZE_LINES + CONF)
    assert unread_of(audited) == [("dledger-n1", unread, "dLegerSelfId=n0")] * bool(unread)
    assert audited.outcome.covered.not_judged == ["dledger-n1"]


def test_segments_behind_the_begin_of_dledgers_data_are_not_read(tmp_path: Path) -> None:
    """DLedger was left, the broker wrote commitlog/ anew, and its lines were put back."""
    store = build(tmp_path / "ledger")
    plain = StoreBuilder(RELEASE, SIZES)
    for number in range(7):
        plain.put(Message("Topic0", 0, b"later", uniq=f"7F05{number:08X}"))
    log = plain.write(tmp_path / "plain", clean=True).root / "commitlog"
    shutil.copytree(log, store.root / "commitlog")
    audited = product.audit(store.root, RELEASE, store.broker_conf)
    assert unread_of(audited) == [("commitlog", 7, "enableDLegerCommitLog=true")] and audited.outcome.exit_code == 20


def test_the_older_part_of_a_mixed_store_is_read(tmp_path: Path) -> None:
    _, store = mixed(tmp_path)
    assert unread_of(product.audit(store.root, store.release, store.broker_conf)) == []


@pytest.mark.parametrize(
    ("without", "conf", "headline"),
    [
        ("dLegerSelfId=n0\n", "", "Do not start this copy with this broker.conf: 40 messages in dledger-n0/"),
        ("dLegerPeers=n0-127.0.0.1:20911\n", "", "RocketMQ 5.3.3 does not start on this copy"),
        ("", "enableControllerMode=true\n", "RocketMQ 5.3.3 does not start on this copy"),
    ],
)
def test_lines_without_which_the_process_ends(tmp_path: Path, without: str, conf: str, headline: str) -> None:
    store = build(tmp_path)
    audited = product.audit(store.root, RELEASE, store.broker_conf.replace(without, "") + conf)
    assert audited.broker is not None and audited.broker["starts"] is False and audited.outcome.exit_code == 20
    key = without.partition("=")[0] or "enableControllerMode=true"
    assert key in audited.broker["refusal"] and judge(audited.outcome).headline.startswith(headline)

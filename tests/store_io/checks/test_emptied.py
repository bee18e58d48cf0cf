"""A copy that holds no message, or less than an earlier audit saw: what proves it, and what retention does without a finding."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.report.files.result_files import result_json
from schemas.outcome import Outcome
from schemas.rows import LOSS, NOTE, Finding, FurthestRun
from store_io.answer.headline import verdict_text
from store_io.audit.audit_store import StoreAudit, run_audit
from store_io.base.packed import PackedList
from store_io.checks.emptied import Begins, shrunk_findings
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.source.byte_source import StoreLocation
from store_io.wording.steps import next_text
from tests.support.handmade import samples
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

CODES = ("commitlog_empty", "commitlog_emptied", "commitlog_shrunk")


def made(root: Path, count: int = 60) -> Store:
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 13))
    for number in range(count):
        builder.clock += 10
        builder.put(Message("T", number % 2, bytes(200), keys=f"k{number}", uniq=f"U{number:03}"))
    store = builder.write(root)
    (root / "config").mkdir(exist_ok=True)
    return store


def bare(root: Path) -> Store:
    """All that a new broker leaves: a checkpoint of zeros."""
    store = made(root)
    for part in ("commitlog", "consumequeue", "index", "config"):
        shutil.rmtree(root / part, ignore_errors=True)
    (root / "commitlog").mkdir()
    (root / "checkpoint").write_bytes(bytes(4096))
    return store


def audited(store: Store) -> StoreAudit:
    """The audit as the command makes it, without an earlier run."""
    return audited_folder(store.root, store.release, store.broker_conf)


def audited_folder(root: Path, release: str = "5.3.3", broker_conf: str | None = None) -> StoreAudit:
    return run_audit(AuditRequest("s", StoreLocation(str(root)), release, broker_conf, perhaps_emptied=True))


def told(outcome: Outcome) -> list[tuple[str, str]]:
    return [(f.code, f.severity) for f in outcome.found.findings if f.code in CODES]


def test_a_broker_that_never_got_a_message_is_no_alarm(tmp_path: Path) -> None:
    outcome = audited(bare(tmp_path)).outcome()
    assert told(outcome) == [("commitlog_empty", NOTE)] and outcome.exit_code == 0
    assert verdict_text(outcome).startswith("This copy holds no message, and nothing in it shows that it ever held one")


def checkpoint(*fields: int) -> Callable[[Store, Path], None]:
    def write(_: Store, root: Path) -> None:
        data = b"".join(field.to_bytes(8, "big", signed=True) for field in fields)
        (root / "checkpoint").write_bytes(data.ljust(4096, b"\0"))

    return write


def config(name: str, content: object) -> Callable[[Store, Path], None]:
    def write(_: Store, root: Path) -> None:
        (root / "config").mkdir()
        (root / "config" / name).write_text(json.dumps(content))

    return write


def kept(part: str) -> Callable[[Store, Path], None]:
    def write(whole: Store, root: Path) -> None:
        shutil.copytree(whole.root / part, root / part)

    return write


def unwritten(path: str) -> Callable[[Store, Path], None]:
    def write(_: Store, root: Path) -> None:
        (root / path).parent.mkdir(parents=True)
        (root / path).write_bytes(bytes(1120 if path.startswith("index") else 400))

    return write


def zeroed(_: Store, root: Path) -> None:
    """A segment that was made in advance and never written."""
    (root / "commitlog" / f"{0:020}").write_bytes(bytes(1 << 13))


@pytest.mark.parametrize(
    ("left", "proof"),
    [
        (checkpoint(1_795_000_000_000), "the checkpoint has the time of a message"),
        (checkpoint(0, 0, 1_795_000_000_000), "the checkpoint has the time of a message"),
        (checkpoint(0, 0, 0, 0, 4096), "the checkpoint has the physical offset of a message"),
        (checkpoint(0, 0, 0, 4096, 0), ""),  # the master's end, which a slave is told before it has a byte
        (checkpoint(0, 0, 0, -1, -1), ""),
        (kept("consumequeue"), "2 ConsumeQueues have entries"),
        (kept("index"), "3 index files have entries"),
        (unwritten(f"consumequeue/T/0/{0:020}"), "1 ConsumeQueue file is here, which a broker makes when it stores a message"),
        (unwritten(f"batchconsumequeue/T/0/{0:020}"), "1 ConsumeQueue file is here"),
        (unwritten("index/20261120212022463"), "1 index file is here"),
        (unwritten(f"timerlog/{0:020}"), "1 timer log file is here"),
        (config("consumerOffset.json", {"offsetTable": {"T@g": {"0": 5, "1": 0}}}), "1 offset is above 0 in config/consumer"),
        (config("consumerOffset.json", {"offsetTable": {"T@g": {"0": 0, "1": 0}}}), ""),
        (config("delayOffset.json", {"offsetTable": {"1": 4, "2": 7}}), "2 offsets are above 0 in config/delayOffset.json"),
        (config("delayOffset.json", {"offsetTable": {"1": 0}}), ""),
        (zeroed, ""),
    ],
)
def test_what_shows_that_messages_were_there(tmp_path: Path, left: Callable[[Store, Path], None], proof: str) -> None:
    whole, store = made(tmp_path / "whole"), bare(tmp_path / "s")
    left(whole, store.root)
    outcome = audited(store).outcome()
    assert told(outcome) == [("commitlog_emptied", LOSS) if proof else ("commitlog_empty", NOTE)]
    assert proof in next(f.message for f in outcome.found.findings if f.code in CODES)
    assert (outcome.exit_code == 20) == bool(proof)
    assert verdict_text(outcome).startswith("Nothing to lose is left here" if proof else "This copy holds no message")


@pytest.mark.parametrize("damage", ["none", "all damaged"])
def test_a_log_with_messages_or_damage_is_not_empty(tmp_path: Path, damage: str) -> None:
    store = made(tmp_path)
    if damage != "none":
        for path in (tmp_path / "commitlog").iterdir():
            path.write_bytes(b"\x7f" * path.stat().st_size)
    outcome = audited(store).outcome()
    assert told(outcome) == [] and (outcome.exit_code == 0) == (damage == "none")


# ---- against an earlier audit ----------------------------------------------------------------------------------------


def against(store: Store, furthest: FurthestRun | None, before: Begins | None = None, named: bool = True) -> list[Finding]:
    return shrunk_findings(audited(store).evidence, furthest, named, lambda _: before or {})


def seen(store: Store) -> tuple[FurthestRun, Begins]:
    outcome = audited(store).outcome()
    begins = {row["file"]: row["first_store_time_ms"] for row in outcome.rows.segments if row["messages"]}
    return FurthestRun("r1", "2026-11-20 02:15", outcome.holds.messages, outcome.holds.log_end), begins


def drop(store: Store, *numbers: int) -> None:
    names = sorted((store.root / "commitlog").iterdir())
    for number in numbers:
        names[number].unlink()


def test_retention_is_no_finding(tmp_path: Path) -> None:
    store = made(tmp_path)
    before, rows = seen(store)
    assert before.messages == 60 and before.log_end == store.records[-1].at + store.records[-1].size
    assert against(store, before, rows) == [] == against(store, None)
    segments = len(list((tmp_path / "commitlog").iterdir()))
    for _ in range(segments - 1):  # to the newest one
        drop(store, 0)
        assert against(store, before, rows) == []


def test_a_log_that_turned_over_is_no_finding(tmp_path: Path) -> None:
    """It begins beyond the end that was seen, as one does whose every segment has expired between two audits."""
    store = made(tmp_path)
    drop(store, 0, 1)
    first = min(int(path.name) for path in (tmp_path / "commitlog").iterdir())
    assert against(store, FurthestRun("r1", "2026-11-20 02:15", 9, first - 100)) == []


def test_an_end_that_goes_back_is_a_loss(tmp_path: Path) -> None:
    store = made(tmp_path)
    before, rows = seen(store)
    drop(store, -1)
    for named in (True, False):  # without a name the segments that both have tell that it is one log
        (finding,) = against(store, before, rows, named)
        assert (finding.code, finding.severity, finding.file) == ("commitlog_shrunk", "", "commitlog")
        assert "run r1" in finding.message and f"saw 60 messages, up to physical offset {before.log_end:,}" in finding.message
    audit = audited(store)
    audit.furthest, audit.findings = before, PackedList([*audit.findings, finding])
    outcome = audit.outcome()
    assert outcome.exit_code == 20 and finding.message[1:] in verdict_text(outcome)


def test_another_store_in_the_same_place_is_no_loss(tmp_path: Path) -> None:
    before, rows = seen(made(tmp_path / "a", 200))
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 13))
    builder.clock += 86_400_000
    for _ in range(5):
        builder.put(Message("T", 0, bytes(200)))
    other = builder.write(tmp_path / "b")
    (finding,) = against(other, before, rows, named=False)
    assert finding.severity == NOTE and "give the store another name" in next_text(finding.next)
    (finding,) = against(other, before, rows, named=True)  # a person called both the same
    assert finding.severity == ""


def test_nothing_left_is_a_loss_wherever_it_lay(tmp_path: Path) -> None:
    before, rows = seen(made(tmp_path / "a"))
    for furthest in (before, FurthestRun("r1", before.started_at, 60)):
        (finding,) = against(bare(tmp_path / "b"), furthest, rows, named=False)
        assert (finding.code, finding.severity, finding.actual) == ("commitlog_shrunk", "", "no message")
        shutil.rmtree(tmp_path / "b")


def test_damage_at_the_end_is_told_as_damage(tmp_path: Path) -> None:
    store = made(tmp_path)
    before, rows = seen(store)
    record = store.records[-1]
    path = sorted((tmp_path / "commitlog").iterdir())[-1]
    data = bytearray(path.read_bytes())
    at = record.at - int(path.name)
    data[at + 4 : at + record.size] = b"\x7f" * (record.size - 4)
    path.write_bytes(data)
    outcome = audited(store).outcome()
    assert outcome.holds.log_end is not None and before.log_end is not None and outcome.holds.log_end < before.log_end
    assert against(store, before, rows) == []


# ---- a folder without commitlog/ -------------------------------------------------------------------------------------


def folder(root: Path, *names: str) -> Path:
    """A folder with these names in it, those with a slash at the end as folders."""
    root.mkdir()
    for name in names:
        (root / name).mkdir(parents=True) if name.endswith("/") else (root / name).write_bytes(b"")
    return root


def held_against(audit: StoreAudit, furthest: FurthestRun | None) -> Outcome:
    audit.hold_against(furthest, True, lambda _: {})
    audit.settle()
    return audit.outcome()


SEEN = FurthestRun("r1", "2026-11-20 02:15", 2153, 90_000, "/another/place")


@pytest.mark.parametrize(("names", "level"), [((), "full"), (("config/", "lock", "abort"), "quick"), (("index/",), "full")])
def test_an_emptied_folder_is_a_loss_where_an_earlier_audit_saw_messages(
    tmp_path: Path, names: tuple[str, ...], level: str
) -> None:
    root = folder(tmp_path / "s", *names)
    audit = run_audit(AuditRequest("s", StoreLocation(str(root)), "5.3.3", level=level, perhaps_emptied=True))
    outcome = held_against(audit, SEEN)
    assert outcome.exit_code == 20 and ("commitlog_shrunk", LOSS) in told(outcome)
    assert "saw 2,153 messages, up to physical offset 90,000" in verdict_text(outcome)
    assert json.loads("".join(result_json(samples.RUN, [outcome])))["stores"][0]["emptied"] is True
    if names != ("index/",):
        (shrunk,) = [f for f in outcome.found.findings if f.code == "commitlog_shrunk"]
        assert f"{root} {'holds no CommitLog' if names else 'is an empty folder'} now" in shrunk.message
        assert "not mounted" in next_text(shrunk.next)


@pytest.mark.parametrize("names", [(), ("notes.txt",), ("config/", "lock")])
def test_a_folder_that_nothing_shows_to_be_a_store_is_no_emptied_one(tmp_path: Path, names: tuple[str, ...]) -> None:
    root = folder(tmp_path / "s", *names)
    outcome = held_against(audited_folder(root), None)
    assert (outcome.exit_code, outcome.complete, outcome.found.findings, outcome.rows.segments) == (3, False, (), ())
    assert verdict_text(outcome) == f"Could not be audited: {outcome.incomplete[0]}."
    assert "not a RocketMQ store" in outcome.incomplete[0]
    assert len(outcome.incomplete) == 1 and audit_plan(outcome)["broker"] is None and audit_plan(outcome)["settings"] == {}


def test_a_path_to_other_things_is_a_wrong_path(tmp_path: Path) -> None:
    root = folder(tmp_path / "s", "notes.txt", "photos/")
    assert held_against(audited_folder(root), SEEN).exit_code == 3
    there = FurthestRun(SEEN.run_id, SEEN.started_at, SEEN.messages, SEEN.log_end, str(root))
    assert held_against(audited_folder(root), there).exit_code == 20  # the very folder in which the messages were
    inside = folder(tmp_path / "inside", f"{0:020}")
    outcome = held_against(audited_folder(inside), SEEN)
    assert outcome.exit_code == 3 and "a commitlog directory" in verdict_text(outcome)
    assert held_against(audited_folder(tmp_path / "none"), SEEN).exit_code == 3


@pytest.mark.parametrize("kept_part", ["consumequeue", "config"])
def test_other_files_prove_messages_where_commitlog_is_gone(tmp_path: Path, kept_part: str) -> None:
    whole, root = made(tmp_path / "whole"), folder(tmp_path / "s")
    if kept_part == "config":
        config("consumerOffset.json", {"offsetTable": {"T@g": {"0": 5}}})(whole, root)
    else:
        kept(kept_part)(whole, root)
    outcome = held_against(audited_folder(root), None)
    assert (outcome.exit_code, told(outcome)) == (20, [("commitlog_emptied", LOSS)])
    said = verdict_text(outcome)
    assert said.startswith("Nothing to lose is left here; ") and "There is no commitlog/ here, but " in said

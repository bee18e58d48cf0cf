"""The commands repair and manifest as they are typed."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from jobs.cli.options import Command, parse
from jobs.cli.terminal import CLEAR_LINE
from jobs.commands import repair as repair_command
from jobs.repair import hand_over
from jobs.runtime import output
from jobs.tasks.threads_or_spark import run_tasks_for
from schemas.layouts.store_names import BESIDE, RESEND_SUFFIX
from store_io.audit.audit_store import run_local
from store_io.base.errors import StoreError
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.repair.writing import store_writer
from store_io.source.byte_source import StoreLocation
from tests import ROOT
from tests.support.answers.repaired import content, plan_of, previewed, repaired
from tests.support.damage import overwrite
from tests.support.processes.children import PATIENCE_SECONDS, until
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.texts.json_schemas import faults


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with store/, broker.conf and plan.json."""
    case = next(c for c in corpus_tools.cases() if c.name == "g11-533-zero-tail")
    folder = tmp_path_factory.mktemp("typed")
    root = case.unpack(folder)
    outcome = run_local(AuditRequest("store", StoreLocation(str(root)), case.release, case.broker_conf))
    (folder / "plan.json").write_text(json.dumps(audit_plan(outcome)))
    return folder


FILES = ["new", "new.handover.html", "new.plan.json", "new.repair.json", "new.unsaved.jsonl"]

SLOW = """
import sys, time
from jobs import entry
from jobs.commands import repair
def wait(sentence):
    if sentence == "auditing the copy":
        print("now", flush=True)
        time.sleep(60)
repair.tell_step = wait
sys.exit(entry.main(sys.argv[1:]))
"""

TOLD = """
import sys
from jobs import entry
from jobs.tasks.runner import Runner
real = Runner.run
def run(self, tasks, describe):
    print("job", describe, *sorted({type(task).__name__ for task in tasks}), file=sys.stderr)
    return real(self, tasks, describe)
Runner.run = run
sys.exit(entry.main(sys.argv[1:]))
"""


def typed_words(store: Path, plan: str = "plan.json") -> list[str]:
    return ["repair", str(store / "store"), "--plan", str(store / plan)]


def typed(store: Path, *words: str, plan: str = "plan.json") -> int:
    return entry.main([*typed_words(store, plan), *words])


def test_a_repair(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(store)
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run") == 0
    assert "would be made of it" in capsys.readouterr().out and not list(tmp_path.iterdir())
    given = tmp_path.parent / f"{tmp_path.name}.conf"
    given.write_text((store / "broker.conf").read_text() + "duplicationEnable=no\n")
    assert typed(store, "--to", str(tmp_path / "new"), "--broker-conf", str(given)) == 0
    assert "takes that for false, as all that is not true" in (tmp_path / "new.handover.html").read_text()
    said = capsys.readouterr().out
    report = json.loads((tmp_path / "new.repair.json").read_text())
    assert report["consistent"] is True and report["policy"] == "broker" and "Queue " in said
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
    assert faults("plan", (tmp_path / "new.plan.json").read_text()) == []
    assert entry.main(["after-start", str(tmp_path / "new"), "--plan", str(tmp_path / "new.plan.json"), "--full"]) == 0
    assert "  Next       before a start, go through" in said
    assert content(store) == before
    assert typed(store, "--to", str(tmp_path / "new")) == 2
    assert "exists" in capsys.readouterr().err


def test_targets_that_are_refused(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to(store / "store" / "index")
    for target, words in (
        (store / "store" / "new", "lies inside the store"),
        (tmp_path / "link" / "new", "lies inside the store"),
        (tmp_path / "absent" / "new", "there is no folder"),
        (Path("gs:/bucket/new"), "a folder of this machine or one that is mounted here, s3://"),
    ):
        assert typed(store, "--to", str(target)) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--policy", "salvage")])
@pytest.mark.parametrize("left", [(suffix,) for suffix in BESIDE] + [(), BESIDE])
def test_the_files_of_another_repair_are_named_and_stay(
    left: tuple[str, ...], words: tuple[str, ...], store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of messages to be sent again may be the only one."""
    for suffix in left:
        (tmp_path / f"new{suffix}").write_text("first")
    (tmp_path / "new.other").write_text("another file")
    (tmp_path / "newer.resend.jsonl").write_text("another store's")
    before = content(tmp_path)
    code = typed(store, "--to", str(tmp_path / "new"), *words)
    said = capsys.readouterr().err
    assert code == (2 if left else 0)
    assert [suffix for suffix in BESIDE if f"'{tmp_path}/new{suffix}'" in said] == list(left)
    after = content(tmp_path)
    assert {name: after[name] for name in before} == before and (not left or after == before)


def test_arguments_that_contradict_the_plan(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.conf"
    other.write_text("mappedFileSizeCommitLog=4096\n")
    for words, said in (
        (["--release", "4.8.0"], "the plan was made for 5.3.3"),
        (["--broker-conf", str(other)], "mappedFileSizeCommitLog=4096"),
        (["--policy", "hope"], "broker or salvage"),
    ):
        assert typed(store, "--to", str(tmp_path / "new"), *words) == 2
        assert said in capsys.readouterr().err
    assert typed(store, "--to", str(tmp_path / "new"), plan="broker.conf") == 2
    assert typed(store, "--to", str(tmp_path / "new"), plan="none.json") == 2


def test_a_plan_for_an_assumed_release_wants_it_named(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads((store / "plan.json").read_text())
    assert plan["release_from"] == "named"
    (store / "guess.json").write_text(json.dumps({**plan, "release_from": "default"}))
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run", plan="guess.json") == 2
    assert "its release, 5.3.3, was assumed: name the broker's own with --release" in capsys.readouterr().err
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run", "--release", "5.3.3", plan="guess.json") == 0
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run", "--release", "5.3.33", plan="guess.json") == 2
    assert "--release 5.3.33: the plan was made for 5.3.3" in capsys.readouterr().err
    (store / "unknown.json").write_text(json.dumps({**plan, "release_from": "5.3.33"}))
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run", plan="unknown.json") == 2
    old = {key: value for key, value in plan.items() if key != "release_from"}
    (store / "old.json").write_text(json.dumps(old))
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run", plan="old.json") == 0


def test_a_broker_conf_is_compared_both_ways(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = (store / "broker.conf").read_text().splitlines()
    plan = json.loads((store / "plan.json").read_text())
    key, row = next((k, r) for k, r in sorted(plan["settings"].items()) if r["from"] == "broker.conf" and "apped" in k)
    other = tmp_path / "other.conf"
    for lines, said in (
        ([*own, "duplicationEnable=true"], "duplicationEnable=True; the plan was made with False (default)"),
        ([line for line in own if not line.startswith(key)], f"does not name {key}"),
        ([*own, f"{key}=777"], f"{key}=777; the plan was made with {row['value']} (broker.conf)"),
    ):
        other.write_text("\n".join(lines))
        assert typed(store, "--to", str(tmp_path / "new"), "--broker-conf", str(other)) == 2
        assert said in capsys.readouterr().err
    for lines, said in (
        ([*own, "duplicationEnable=false", "unknown=1"], "those of the plan; broker.conf agrees"),
        (None, "no --broker-conf was"),
    ):
        words = ["--broker-conf", str(other)] if lines else []
        other.write_text("\n".join(lines or []))
        assert typed(store, "--to", str(tmp_path / "new"), "--dry-run", *words) == 0
        assert said in capsys.readouterr().out
    inferred = json.loads((store / "plan.json").read_text())
    inferred["settings"][key]["from"] = "inferred"
    (store / "inferred.json").write_text(json.dumps(inferred))
    other.write_text("brokerIP1=a\n")
    assert typed(store, "--to", str(tmp_path / "new"), "--broker-conf", str(other), plan="inferred.json") == 2
    assert f"does not name {key}" in capsys.readouterr().err


@pytest.mark.parametrize("named", [True, False])
def test_the_first_day_of_the_new_store_goes_by_the_file_that_is_named(store: Path, tmp_path: Path, named: bool) -> None:
    """Also if the audit had none, and the plan's sizes are from the files: one that agrees with them decides the day."""
    conf = (store / "broker.conf").read_text() if named else None
    plan = audit_plan(run_local(AuditRequest("store", StoreLocation(str(store / "store")), "5.3.3", conf)))
    own = [
        f"{key}={row['value']}"
        for key, row in plan["settings"].items()
        if row["from"] == ("broker.conf" if named else "inferred")
    ]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "day.conf").write_text("\n".join([*own, "fileReservedTime=500000", "deleteWhen=3"]))
    words = ["--plan", str(tmp_path / "plan.json"), "--to", str(tmp_path / "new"), "--broker-conf", str(tmp_path / "day.conf")]
    assert entry.main(["repair", str(store / "store"), *words, "--disk-used", "50"]) == 0
    day = json.loads((tmp_path / "new.plan.json").read_text())["first_day"]
    assert day["settings"] == {"deleteWhen": "3", "fileReservedTime": 500000}
    kept = day["retention"]
    assert (kept["reserved_hours"], kept["delete_when"], kept["at_once"], kept["in_delete_when"]) == (500000, "3", [], [])
    page = (tmp_path / "new.handover.html").read_text()
    assert "fileReservedTime=500000 (broker.conf)" in page and "deletes segments older than 500000 hours at once" in page


def test_donors_that_are_none(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to(store / "store")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "commitlog").symlink_to(store / "store" / "commitlog")
    (tmp_path / "empty").mkdir()
    for donor, code, said in (
        (tmp_path / "absent", 3, "there is nothing of this name"),
        (tmp_path / "empty", 3, "an empty directory"),
        (store / "store", 2, "itself, so it has nothing to give"),
        (tmp_path / "link", 2, "itself, so it has nothing to give"),
        (tmp_path / "part", 2, "itself, so it has nothing to give"),
    ):
        assert typed(store, "--to", str(tmp_path / "new"), "--donor", str(donor)) == code
        complaint = capsys.readouterr().err
        assert said in complaint and "--donor" in complaint
    assert not (tmp_path / "new").exists()


STOPS = ("auditing the copy", "rebuilding queues and index", "auditing the new store", "writing it to the disk")


@pytest.mark.parametrize(
    ("stop", "number", "code"), [*zip(STOPS, [signal.SIGTERM, signal.SIGINT] * 2, [143, 130] * 2, strict=True)], ids=STOPS
)
def test_a_signal_ends_it_and_leaves_nothing(store: Path, tmp_path: Path, stop: str, number: int, code: int) -> None:
    """In a process of its own, which is sent the signal, and another while it cleans up, at a step that it has just begun."""
    if (child := os.fork()) == 0:
        met = False

        def progress(sentence: str) -> None:
            nonlocal met
            if sentence == stop:
                met = True
                os.kill(os.getpid(), number)

        def unlink(*words: Any, **more: Any) -> None:
            if met:
                os.kill(os.getpid(), number)
            real(*words, **more)

        real, os.unlink = os.unlink, unlink  # type: ignore[assignment]
        repair_command.tell_step = progress
        try:
            code = typed(store, "--to", str(tmp_path / "new"))
        except BaseException:
            code = 1
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == code
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module, name", [(store_writer, "_remove_folder"), (hand_over, "hand_over")])
def test_a_signal_once_the_store_is_in_place_says_so_and_before_it_leaves_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: Any, name: str
) -> None:
    real = getattr(module, name)

    def stopped(*words: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*words)

    monkeypatch.setattr(module, name, stopped)
    assert typed(store, "--to", str(tmp_path / "new")) == 130
    there = f"the new store {tmp_path}/new is in place and complete, and so are the files beside it" in capsys.readouterr().err
    names = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("."))
    assert there == (module is store_writer) and names == (FILES if there else [])


@pytest.mark.parametrize("suffix", [suffix for suffix in BESIDE if suffix != RESEND_SUFFIX])
@pytest.mark.parametrize("call", ["write", "fsync", "rename", "link"])
def test_without_its_lists_and_its_page_no_store_is_put_in_place(
    suffix: str, call: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script that looks at the code alone would start the store, and nobody would know what to send again."""
    real = getattr(os, call)

    def path_of(word: Any) -> str:
        return os.readlink(f"/proc/self/fd/{word}") if isinstance(word, int) else str(word)

    def full(word: Any, *words: Any, **more: Any) -> Any:
        if f"new{suffix}" in path_of(word):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(word, *words, **more)

    if call == "write":  # the file object writes by itself
        limited = output.write_local

        def write(path: str, parts: Any, **more: Any) -> None:
            if path.endswith(suffix):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            limited(path, parts, **more)

        monkeypatch.setattr(hand_over, "write_local", write)
    else:
        monkeypatch.setattr(os, call, full)
    assert typed(store, "--to", str(tmp_path / "new")) == 3
    said = capsys.readouterr()
    assert f"{tmp_path}/new{suffix}: cannot " in said.err and "fault of this program" not in said.err and "Result" not in said.out
    assert not list(tmp_path.iterdir())
    if call == "link":  # no call leaves anything that a second repair would meet: after one of them it is made
        monkeypatch.undo()
        assert typed(store, "--to", str(tmp_path / "new")) == 0


@pytest.mark.parametrize("call", ["close", "unlink", "rmdir"])
def test_a_call_that_fails_while_the_repair_clears_up_is_said_with_its_file(
    call: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, remove = getattr(os, call), store_writer._remove_folder

    def fails(word: Any, *words: Any, **more: Any) -> Any:
        if call != "close":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(word, *words, **more)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def removed(folder: str) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(os, call, fails)
            remove(folder)

    monkeypatch.setattr(store_writer, "_remove_folder", removed)
    assert typed(store, "--to", str(tmp_path / "new")) == 0
    said = capsys.readouterr().err
    left = [str(path) for path in tmp_path.iterdir() if path.name not in FILES]
    assert "fault of this program" not in said and all(f"warning: {path} cannot be removed" in said for path in left)
    assert left or call == "close"


def test_what_a_killed_run_had_not_written_to_the_end_is_removed(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = [f".new{suffix}.0123abcd.writing" for suffix in BESIDE]
    others = [".new.repair.json.0123abcd", ".newer.repair.json.0123abcd.writing", ".new.repair.json.xyz.writing"]
    for name in (*ours, *others):
        (tmp_path / name).write_text("part")
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run") == 0
    assert len(list(tmp_path.iterdir())) == len(ours) + len(others)
    real = os.unlink

    def unlink(path: Any, **more: Any) -> None:
        if str(path).endswith(ours[0]):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        real(path, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", unlink)
        assert typed(store, "--to", str(tmp_path / "new")) == 0
    assert f"warning: {tmp_path}/{ours[0]} is left from a run that was killed, and cannot be removed" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([ours[0], *others, *FILES])


def test_what_a_killed_run_had_put_beside_its_store_is_no_reason_to_refuse(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if (child := os.fork()) == 0:
        store_writer._rename_new = lambda origin, target: os.kill(os.getpid(), signal.SIGKILL)
        typed(store, "--to", str(tmp_path / "new"))
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    before = content(tmp_path)
    assert {name for name in before if name in FILES} == {*FILES} - {"new"}
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run") == 0 and content(tmp_path) == before
    assert typed(store, "--to", str(tmp_path / "new")) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


@pytest.mark.parametrize(("word", "number", "code"), [("--to", signal.SIGTERM, 143), ("--dry-run", signal.SIGINT, 130)])
def test_a_process_that_is_stopped(store: Path, tmp_path: Path, word: str, number: signal.Signals, code: int) -> None:
    """As a scheduler does it: from outside, at moments that nobody has chosen."""
    scratch, target = tmp_path / "scratch", tmp_path / "target"
    scratch.mkdir(), target.mkdir()
    words = [*typed_words(store), "--to", str(target / "new"), *(["--dry-run"] if word == "--dry-run" else [])]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *words], cwd=ROOT, env={**os.environ, "TMPDIR": str(scratch)}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"now\n"
    process.send_signal(number)
    assert process.wait(PATIENCE_SECONDS) == code
    process.stdout.close()
    assert not [p.name for p in (*target.iterdir(), *scratch.iterdir()) if "repairing" in p.name or p.name.startswith("new")]


@dataclass(frozen=True)
class Step:
    """A task that notes its beginning and its end. between: what it does between them, such as to wait for another task."""

    bytes_to_read: int
    noted: list[str]
    between: Callable[[], object] = lambda: None
    store: int = 0
    not_after: float = 0
    paths: tuple[str, ...] = ()

    def run(self) -> int:
        self.noted.append(f"begin {self.bytes_to_read}")
        self.between()
        self.noted.append(f"end {self.bytes_to_read}")
        return self.bytes_to_read


def test_tasks_run_side_by_side_the_largest_first(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    noted: list[str] = []
    with run_tasks_for((), StoreLocation(str(store / "store"))) as run_tasks:
        assert run_tasks([], "none") == []
        both = threading.Barrier(2, timeout=PATIENCE_SECONDS)
        assert run_tasks([Step(1, noted), Step(3, noted, both.wait), Step(2, noted, both.wait)], "some") == [1, 3, 2]
        assert sorted(noted[:2]) == ["begin 2", "begin 3"]


def test_how_far_tasks_are_is_drawn_with_the_time_left(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setattr(sys, "stderr", terminal)
    noted: list[str] = []
    with run_tasks_for((), StoreLocation(str(store / "store"))) as run_tasks:
        waits = Step(1 << 20, noted, lambda: until(lambda: " left" in terminal.getvalue(), "the line"))
        assert run_tasks([Step(3 << 20, noted), waits], "auditing") == [3 << 20, 1 << 20]
    drawn = [line for line in terminal.getvalue().split(CLEAR_LINE) if " left" in line]
    assert drawn and all(line.startswith("auditing, 75 %, ") for line in drawn), drawn
    assert terminal.getvalue().endswith(CLEAR_LINE), "nothing of it stays"


def test_no_task_begins_after_one_has_failed(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    noted: list[str] = []
    both, workers = threading.Barrier(2, timeout=PATIENCE_SECONDS), set[threading.Thread]()

    def begun() -> None:
        workers.add(threading.current_thread())
        both.wait()

    def fails() -> None:
        begun()
        raise StoreError("bad")

    def ends_later() -> None:
        begun()
        (other,) = workers - {threading.current_thread()}
        other.join(PATIENCE_SECONDS)  # it has failed, and takes no other task

    steps = [*(Step(size, noted) for size in (1, 2, 3)), Step(9, noted, fails), Step(8, noted, ends_later)]
    with run_tasks_for((), StoreLocation(str(store / "store"))) as run_tasks, pytest.raises(StoreError, match="bad"):
        run_tasks(steps, "faulty")
    assert sorted(noted) == ["begin 8", "begin 9", "end 8"]


def test_another_store_than_the_plan_s(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(store / "store", tmp_path / "store")
    overwrite(tmp_path / "store" / "checkpoint", 0, b"\x01")
    code = entry.main(["repair", str(tmp_path / "store"), "--plan", str(store / "plan.json"), "--to", str(tmp_path / "new")])
    assert code == 3 and "checkpoint: other bytes" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_setting_that_the_plan_s_audit_cannot_have_had(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads((store / "plan.json").read_text())
    key = next(key for key, row in sorted(plan["settings"].items()) if row["from"] == "default" and type(row["value"]) is int)
    plan["settings"][key]["value"] += 1
    (store / "odd.json").write_text(json.dumps(plan))
    assert typed(store, "--to", str(tmp_path / "new"), plan="odd.json") == 3
    assert f"settings.{key}" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_broker_conf_that_fits_no_segment_is_named_before_the_work_and_alone(tmp_path: Path) -> None:
    sizes = Sizes(segment=1 << 13)
    builder = StoreBuilder("5.3.3", sizes)
    for number in range(60):
        builder.put(Message("T", 0, bytes(200), keys=f"k{number}"))
    root = builder.write(tmp_path / "store").root
    for size in (1 << 12, 1 << 14):
        plan = plan_of(root, "5.3.3", builder.broker_conf().replace(f"={1 << 13}", f"={size}"))
        for act in (repaired, previewed):
            with pytest.raises(StoreError) as told:
                act(root, tmp_path / "new", plan, "salvage")
            assert str(told.value).startswith(f"broker.conf says mappedFileSizeCommitLog = {size}; all 3 segments")
            assert str(told.value).endswith("Audit the copy again with its own broker.conf, and repair by that plan")
        assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_manifest(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, file = tmp_path / "store", tmp_path / "m"
    shutil.copytree(store / "store", root)
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "odd\nname").write_bytes(b"x")
    assert entry.main(["manifest", str(root), "--write", str(file)]) == 0
    assert entry.main(["manifest", str(root), "--verify", str(file)]) == 0
    overwrite(root / "checkpoint", 0, b"\x01")
    (root / "config" / "odd\nname").unlink()
    (root / "more").write_bytes(b"")
    capsys.readouterr()
    assert entry.main(["manifest", str(root), "--verify", str(file)]) == 3
    said = capsys.readouterr().out
    assert "checkpoint: other bytes" in said and "more: is not in the manifest" in said and "odd\\x0aname: is in" in said
    assert entry.main(["manifest", str(root), "--write", str(root / "m")]) == 2
    for other in (b"nothing\n", b"\x80\xff\x00 no text", b""):
        file.write_bytes(other)
        capsys.readouterr()
        assert entry.main(["manifest", str(root), "--verify", str(file)]) == 2
        said = capsys.readouterr().err
        assert f"--verify {str(file)!r}: no list that manifest wrote: " in said and "codec" not in said


def test_spark_s_words_reach_it() -> None:
    command = parse(["repair", "S", "--plan", "p", "--to", "n", "--master", "local[2]", "--fix-offsets"])
    flags = frozenset({"--fix-offsets"})
    assert command == Command("repair", ("--master", "local[2]"), None, ("S",), {"--plan": "p", "--to": "n"}, flags)


@pytest.mark.spark
def test_on_spark_it_makes_the_same_and_no_job_reads_the_copy_while_it_is_made(store: Path, tmp_path: Path) -> None:
    words = [*typed_words(store), "--to", str(tmp_path / "spark"), "--master", "local[1]"]
    done = subprocess.run([sys.executable, "-c", TOLD, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    jobs = [line.removeprefix("job ") for line in done.stderr.splitlines() if line.startswith("job ")]
    assert not jobs[0].startswith("audit "), "the copy was audited where it was made"
    assert "rebuild BuildTask" in jobs and any("SegmentTask" in job for job in jobs), "the audit of the new store is a job"
    assert typed(store, "--to", str(tmp_path / "threads")) == 0
    assert content(tmp_path / "spark") == content(tmp_path / "threads")


def test_a_table_begins_empty_only_where_tables_are_written(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(store, "--to", str(tmp_path / "new"), "--empty-config") == 2
    assert "--empty-config: it says how --fix-config decides" in capsys.readouterr().err


def test_a_risk_that_makes_no_sense(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "new")
    for words, said in (
        (("--heal-risk", "1e-3"), "--heal-risk: it says how --heal decides"),
        (("--heal", "--heal-risk", "2"), "must be a number above 0 and at most 1"),
        (("--heal", "--heal-risk", "nan"), "must be a number above 0 and at most 1"),
    ):
        assert typed(store, "--to", target, *words) == 2
        assert said in capsys.readouterr().err

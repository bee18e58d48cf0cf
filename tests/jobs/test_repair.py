"""The commands repair and manifest as they are typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jobs import cli
from jobs.options import Command, parse
from store_io.audit_store import AuditRequest, run_local
from store_io.byte_source import StoreLocation
from tests import corpus_tools
from tests.repaired import content


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with store/, broker.conf and plan.json."""
    case = next(c for c in corpus_tools.cases() if c.name == "g11-533-zero-tail")
    folder = tmp_path_factory.mktemp("typed")
    root = case.unpack(folder)
    outcome = run_local(AuditRequest("store", StoreLocation(str(root)), case.release, case.broker_conf))
    (folder / "plan.json").write_text(json.dumps(outcome.plan))
    return folder


def typed(store: Path, *words: str, plan: str = "plan.json") -> int:
    return cli.main(["repair", str(store / "store"), "--plan", str(store / plan), *words])


def test_a_repair(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(store)
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run") == 0
    assert "would be made of it" in capsys.readouterr().out and not list(tmp_path.iterdir())
    assert typed(store, "--to", str(tmp_path / "new"), "--broker-conf", str(store / "broker.conf")) == 0
    said = capsys.readouterr().out
    report = json.loads((tmp_path / "new.repair.json").read_text())
    assert report["consistent"] is True and report["policy"] == "broker" and "Queue " in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new", "new.repair.json"]
    assert content(store) == before
    assert typed(store, "--to", str(tmp_path / "new")) == 2
    assert "exists" in capsys.readouterr().err


def test_targets_that_are_refused(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to(store / "store" / "index")
    for target, words in (
        (store / "store" / "new", "lies inside the store"),
        (tmp_path / "link" / "new", "lies inside the store"),
        (tmp_path / "absent" / "new", "there is no folder"),
        (Path("s3://bucket/new"), "this machine"),
    ):
        assert typed(store, "--to", str(target).replace("s3:/", "s3://")) == 2
        assert words in capsys.readouterr().err


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
    old = {key: value for key, value in plan.items() if key != "release_from"}
    (store / "old.json").write_text(json.dumps(old))
    assert typed(store, "--to", str(tmp_path / "new"), "--dry-run", plan="old.json") == 0


def test_another_store_than_the_plan_s(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(store / "store", tmp_path / "store")
    with open(tmp_path / "store" / "checkpoint", "r+b") as file:
        file.write(b"\x01")
    code = cli.main(["repair", str(tmp_path / "store"), "--plan", str(store / "plan.json"), "--to", str(tmp_path / "new")])
    assert code == 3 and "checkpoint: other bytes" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_setting_that_the_plan_s_audit_cannot_have_had(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads((store / "plan.json").read_text())
    key = next(key for key, row in sorted(plan["settings"].items()) if row["from"] == "default" and type(row["value"]) is int)
    plan["settings"][key]["value"] += 1
    (store / "odd.json").write_text(json.dumps(plan))
    assert typed(store, "--to", str(tmp_path / "new"), plan="odd.json") == 3
    assert f"settings.{key}" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_manifest(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, file = tmp_path / "store", tmp_path / "m"
    shutil.copytree(store / "store", root)
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "odd\nname").write_bytes(b"x")
    assert cli.main(["manifest", str(root), "--write", str(file)]) == 0
    assert cli.main(["manifest", str(root), "--verify", str(file)]) == 0
    with open(root / "checkpoint", "r+b") as checkpoint:
        checkpoint.write(b"\x01")
    (root / "config" / "odd\nname").unlink()
    (root / "more").write_bytes(b"")
    capsys.readouterr()
    assert cli.main(["manifest", str(root), "--verify", str(file)]) == 3
    said = capsys.readouterr().out
    assert "checkpoint: other bytes" in said and "more: is not in the manifest" in said and "odd\\x0aname: is in" in said
    assert cli.main(["manifest", str(root), "--write", str(root / "m")]) == 2
    file.write_text("nothing\n")
    assert cli.main(["manifest", str(root), "--verify", str(file)]) == 2


def test_spark_s_words_reach_it() -> None:
    command = parse(["repair", "S", "--plan", "p", "--to", "n", "--master", "local[2]", "--fix-offsets"])
    flags = frozenset({"--fix-offsets"})
    assert command == Command("repair", ("--master", "local[2]"), None, (), None, ("S",), {"--plan": "p", "--to": "n"}, flags)

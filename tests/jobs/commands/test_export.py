"""Exports: files that hold what the scan gives, whole or not there, gone on with after a stop; arguments that make no sense."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.cli import options
from jobs.commands import export
from jobs.commands.export import AskedExport, file_names, read_arguments
from jobs.runtime import session
from jobs.runtime import setup as environment
from jobs.tables.delta_query import DeltaQuery
from schemas.rows import MappedFile
from store_io.base.errors import StoreChanged, StoreError, UsageError
from store_io.messages.scans import DEFAULT_COLUMNS
from tests.schemas.test_json_schemas import faults
from tests.store_io.messages.test_message_rows import odd_store, plain, rows_of
from tests.support.answers.exports import EVERYTHING
from tests.support.answers.lost_messages import damaged_store
from tests.support.delta_readers import READERS, by_dataset_of, wrong
from tests.support.processes.s3_server import BUCKET, S3Server


def command(*words: str) -> options.Command:
    return options.parse(["export", *words])


def asked_for(store: Path, to: Path, *words: str) -> AskedExport:
    return read_arguments(command(str(store), "--to", str(to), "--format", "parquet", *words))


# ---- one segment -----------------------------------------------------------------------------------------------------


def test_files_are_named_by_numbers_alone() -> None:
    segments = [MappedFile("commitlog/0", 0, 9), MappedFile("commitlog[2]/0", 0, 9), MappedFile("commitlog/+7", 7, 9)]
    assert file_names(segments) == [f"{0:020d}", f"{0:020d}-2", f"{7:020d}"]


# ---- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--columns", "topic,secret"], "--columns 'secret'"),
        (["--columns", "body"], "say --body raw"),
        (["--columns", "topic,topic"], "twice"),
        (["--redact-salt-file", "nothing-here"], "No such file"),
        (["--since", "soon"], "--since"),
        (["another"], "one STORE"),
    ],
)
def test_arguments_that_make_no_sense(tmp_path: Path, words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_arguments(command(str(tmp_path), "--to", str(tmp_path / "x"), "--format", "parquet", *words))


def test_bodies_come_with_their_status(tmp_path: Path) -> None:
    assert asked_for(tmp_path, tmp_path / "x").question.columns == DEFAULT_COLUMNS
    assert asked_for(tmp_path, tmp_path / "x", "--body", "raw").question.columns == EVERYTHING
    asked = asked_for(tmp_path, tmp_path / "x", "--columns", "topic,body", "--body", "decoded")
    assert asked.question.columns == ("topic", "body", "body_status")


def test_folders_that_are_not_an_exports(tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store", 1 << 15).root
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "unfinished").symlink_to(store)
    for to, sentence in (
        (store / "out", "lies inside the store"),
        (tmp_path / "full", "holds 'mine' and no export"),
        (tmp_path / "full" / "mine", "a file of that name"),
        (tmp_path / "linked", "lies inside the store"),
    ):
        with pytest.raises(UsageError, match=sentence):
            export.check_target(asked_for(store, to))


# ---- whole exports ---------------------------------------------------------------------------------------------------


@pytest.fixture
def here(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """The command's own session is the tests'."""

    @contextlib.contextmanager
    def start(words: Any, **_: Any) -> Iterator[Any]:
        yield type("Started", (), {"spark": spark})

    monkeypatch.setattr(session, "start", start)
    return spark


def run(store: Path, to: Path, *words: str) -> int:
    return export.run(command(str(store), "--to", str(to), *words))


@pytest.mark.spark
def test_what_was_asked_for_differently_is_what_was_typed_differently(tmp_path: Path) -> None:
    store, _, _ = damaged_store(tmp_path / "store")
    plain = asked_for(store, tmp_path / "to")
    lost = asked_for(store, tmp_path / "to", "--lost")
    resend = read_arguments(command(str(store), "--to", str(tmp_path / "to"), "--format", "resend"))
    few = asked_for(store, tmp_path / "to", "--lost", "--columns", "topic", "--topic", "T")
    for one, other, words in (
        (plain, lost, "(lost)"),
        (lost, plain, "(lost)"),
        (plain, resend, "(format)"),
        (lost, few, "(columns, filter)"),
        (plain, few, "(columns, filter, lost)"),
    ):
        with pytest.raises(UsageError, match="asked for differently") as refused:
            export.check_same(one, {"asked": other.words})
        assert words in str(refused.value)


def test_a_stopped_export_goes_on(here: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = odd_store(tmp_path / "store", 1 << 15).root
    words = ("--format", "parquet", "--body", "raw", "--redact", "hash")
    write = export.Export._write
    out = tmp_path / "out"

    def stopped(self: export.Export, spark: Any, left: Any, *rest: Any) -> Any:
        write(self, spark, left[:1], *rest)
        (Path(self.folder) / ".00000000000000065536.parquet.writing").write_text("torn")
        raise KeyboardInterrupt

    monkeypatch.setattr(export.Export, "_write", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(store, out, *words)
    monkeypatch.setattr(export.Export, "_write", write)
    assert os.listdir(out) == ["unfinished"]
    first = out / "unfinished/messages" / f"{0:020d}.parquet"
    inode, salt = first.stat().st_ino, out / "unfinished/state/salt"
    assert salt.stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="body"):
        run(store, out, "--format", "parquet", "--redact", "hash")
    assert run(store, out, *words) == 0
    assert sorted(os.listdir(out)) == ["manifest.json", "messages"]
    assert (out / "messages" / first.name).stat().st_ino == inode  # not written again
    manifest = json.loads((out / "manifest.json").read_text())
    assert sorted(os.listdir(out / "messages")) == [f["file"] for f in manifest["files"]] and len(manifest["files"]) > 1
    assert faults("export", json.dumps(manifest)) == []
    rows = [row for f in manifest["files"] for row in pq.read_table(out / "messages" / f["file"]).to_pylist()]
    wanted = rows_of(store, columns=EVERYTHING)
    assert [row["phy_offset"] for row in rows] == [row["phy_offset"] for row in wanted]
    by_key: dict[str, set[str]] = {}
    for mine, reference in zip(rows, wanted, strict=True):
        by_key.setdefault(reference["tags"], set()).add(mine["tags"])
    assert all(len(tokens) == 1 for tokens in by_key.values())  # one salt for both runs
    assert run(store, out, *words) == 0  # nothing left to do
    with pytest.raises(UsageError, match="redact"):
        run(store, out, "--format", "parquet", "--body", "raw")
    (out / "messages" / first.name).unlink()
    with pytest.raises(StoreError, match="though the manifest names it"):
        run(store, out, *words)


@pytest.mark.spark
def test_an_export_into_s3(here: SparkSession, server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, uri = odd_store(tmp_path / "store", 1 << 15).root, f"s3://{BUCKET}/out"
    assert export.run(command(str(store), "--to", uri, "--format", "delta")) == 0
    assert f"in {uri}/messages" in capsys.readouterr().out
    written = [request.key for request in server.requests if request.method == "PUT"]
    assert written[-1] == "out/manifest.json" and written[-2].startswith("out/messages/_delta_log/")
    wanted = rows_of(store, columns=DEFAULT_COLUMNS)
    assert DeltaQuery(f"{uri}/messages").ask(["count(*) AS rows"]) == [{"rows": len(wanted)}]
    assert json.loads(server.get("out/manifest.json"))["messages"] == len(wanted)
    with pytest.raises(UsageError, match="nothing is replaced"):
        export.run(command(str(store), "--to", uri, "--format", "delta"))


@pytest.mark.spark
def test_lost_messages_as_lines_to_send_again(here: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, text, at = damaged_store(tmp_path / "store")
    (tmp_path / "broker.conf").write_text(text, encoding="utf-8")
    settings = ["--release", "5.3.3", "--broker-conf", str(tmp_path / "broker.conf"), "--lost"]
    assert run(root, tmp_path / "lines", "--format", "resend", *settings) == 0
    assert "would lose 8 of the messages" in capsys.readouterr().err
    manifest = json.loads((tmp_path / "lines" / "manifest.json").read_text())
    assert manifest["messages"] == 8 and manifest["asked"]["lost"] is True and faults("export", json.dumps(manifest)) == []
    lines = [
        json.loads(line)
        for file in manifest["files"]
        if file["file"]
        for line in (tmp_path / "lines" / "messages" / file["file"]).read_text("ascii").splitlines()
    ]
    assert [line["phy_offset"] for line in lines] == at[12:] and {line["why_not"] for line in lines} == {None}
    assert run(root, tmp_path / "rows", "--format", "parquet", *settings) == 0
    assert set(pq.read_table(tmp_path / "rows" / "messages").column("lost").to_pylist()) == {"cut"}


@pytest.mark.spark
def test_a_store_that_changed_meanwhile(here: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = odd_store(tmp_path / "store", 1 << 15).root

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(export.Export, "_write", stopped)
        run(store, tmp_path / "out", "--format", "jsonl")
    os.utime(store / "commitlog" / f"{0:020d}", ns=(1, 1))
    with pytest.raises(StoreChanged, match="commitlog/00000000000000000000: the store has changed"):
        run(store, tmp_path / "out", "--format", "jsonl")


@pytest.mark.spark
def test_delta_is_one_version_with_types_and_comments(here: SparkSession, tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store", 1 << 15).root
    assert run(store, tmp_path / "o ut", "--format", "delta", "--body", "raw", "--topic", "plain,主题") == 0
    where = str(tmp_path / "o ut" / "messages")
    frame = here.read.format("delta").load(where)
    assert here.sql(f"DESCRIBE HISTORY delta.`{where}`").count() == 1
    assert frame.schema["phy_offset"].metadata["comment"].startswith("Key: physical offset")
    wanted = [row for row in plain(rows_of(store, columns=EVERYTHING)) if row["topic"] in ("plain", "主题")]
    names = [name for name in EVERYTHING if not name.endswith("_time")]
    found = sorted((row.asDict() for row in frame.select(*names).collect()), key=lambda row: row["phy_offset"])
    assert found == [{name: row[name] for name in names} for row in wanted] and wanted
    table = DeltaTable(where)
    assert [wrong(table, reader(table), 2) for reader in READERS] == [[]] * len(READERS)
    assert run(store, tmp_path / "flags", "--format", "delta", "--columns", "inner_batch") == 0
    table = DeltaTable(tmp_path / "flags" / "messages")
    assert table.metadata().configuration == {"delta.dataSkippingNumIndexedCols": "0"}
    assert wrong(table, by_dataset_of(table)) == []


@pytest.mark.spark
def test_an_export_without_a_message_still_has_its_columns(
    here: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = odd_store(tmp_path / "store").root
    assert run(store, tmp_path / "out", "--format", "parquet", "--topic", "nowhere") == 0
    assert capsys.readouterr().err == "export: this copy has no queue of the topic nowhere\n"
    frame = here.read.parquet(str(tmp_path / "out" / "messages"))
    assert frame.columns == list(DEFAULT_COLUMNS) and frame.count() == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["messages"] == 0
    (tmp_path / "fresh" / "commitlog").mkdir(parents=True)  # of a broker that has no segment yet
    assert run(tmp_path / "fresh", tmp_path / "none", "--format", "parquet") == 0
    assert "export: this copy holds no CommitLog segment\n" in capsys.readouterr().err
    assert here.read.parquet(str(tmp_path / "none" / "messages")).columns == list(DEFAULT_COLUMNS)


@pytest.mark.spark
def test_the_export_of_the_page_of_messages(here: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (environment.ROOT / "docs" / "messages.md").read_text("utf-8")
    found = re.search(r"\$ \./spark-submit\.sh export (\S+) --to (\S+) (.+)\n(.+)\n", text)
    assert found
    assert run(environment.ROOT / found[1], tmp_path / "out", *found[3].split()) == 0
    size, where = r"\d+ KB", r"in \S+/messages"  # what tokens of another salt leave to the compression is not the same
    (printed,) = capsys.readouterr().out.splitlines()
    assert re.sub(size, "", re.sub(where, "", printed)) == re.sub(size, "", re.sub(where, "", found[4]))

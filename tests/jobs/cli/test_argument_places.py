"""Nothing is written into a store, by whatever name or mount its place is given."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import argument_places
from jobs.runtime import setup as environment
from store_io.base.errors import UsageError
from tests.jobs.cli.conftest import audit


@pytest.mark.parametrize("address", ["gs://u:secret@b/out", "http://u:secret@h/out", "abfs://:secret@account/out"])
def test_an_address_with_a_key_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageError, match="holds a password or a key") as refused:
        argument_places.absolute(address)
    assert "secret" not in str(refused.value)
    assert argument_places.absolute("abfs://container@account/out") == "abfs://container@account/out"


def test_output_in_a_store_is_refused_however_it_is_said(store: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(store)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    inside = [
        ["--out", store],
        ["--out", store / "commitlog" / "out"],
        ["--out", tmp_path / "link" / "out"],
        ["--out", f"file://{store}/out"],
        ["--out", tmp_path / "elsewhere" / ".." / "store" / "out"],
        ["--out", tmp_path],  # the store's own folder of results would be the store
        ["--out", tmp_path / "out", "--tables", store / "tables"],
        ["--out", elsewhere / "x", "--commitlog", elsewhere],
    ]
    for words in inside:
        for path in (store, tmp_path / "link"):
            if words == ["--out", tmp_path] and path != store:
                continue
            with pytest.raises(UsageError, match="inside the store"):
                audit(path, *words)
    assert audit(store, "--out", tmp_path / "store-2").out == f"{tmp_path}/store-2"
    for out in ("s3a://bucket/a/store/out", "s3://bucket/a/%73tore/", "s3://bucket/a"):
        with pytest.raises(UsageError, match="inside the store"):
            audit("s3://bucket/a/store", "--out", out)
    assert audit("s3://bucket/a/store", "--out", "s3://bucket/a/store-out").out == "s3://bucket/a/store-out"


@pytest.mark.parametrize("table", ["findings", "runs", "messages", "segments/_delta_log"])
def test_a_table_that_is_a_link_into_a_store_is_refused(table: str, store: Path, tmp_path: Path) -> None:
    link = tmp_path / "out" / "tables" / table
    link.parent.mkdir(parents=True)
    link.symlink_to(store / "commitlog")
    for option, words in (
        ("--out", ["--out", tmp_path / "out"]),
        ("--tables", ["--out", "o", "--tables", tmp_path / "out/tables"]),
    ):
        with pytest.raises(UsageError, match=f"^{option}: .*{table}' lies inside the store"):
            audit(store, *words)


def test_tables_can_only_lie_where_java_has_a_name_for_it(store: Path, tmp_path: Path) -> None:
    strange = os.fsdecode(bytes(tmp_path) + b"/\xff")
    for words in (["--out", strange], ["--out", f"file://{tmp_path}/%FF"]):
        with pytest.raises(UsageError, match=r"^--out .*: not UTF-8, .* with --tables$"):
            audit(store, *words)
    with pytest.raises(UsageError, match=r"^--tables .*: not UTF-8"):
        audit(store, "--out", tmp_path / "o", "--tables", strange)
    assert audit(store, "--out", strange, "--tables", tmp_path / "t").out == strange
    assert audit(store, "--out", tmp_path / "订单").out == f"{tmp_path}/订单"


MOUNTS = shutil.which("unshare") is not None and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
CASES = [
    ["audit", "S", "--out", "M"],
    ["audit", "S", "--out", "M/new/out"],
    ["audit", "S", "--out", "o", "--tables", "M/tables"],
    ["audit", "S", "--out", "o", "--prometheus", "M/a.prom"],
    ["audit", "P", "--commitlog", "S", "--out", "M/o"],
    ["export", "S", "--to", "M/o", "--format", "parquet"],
    ["manifest", "S", "--write", "M/sums"],
]


@pytest.mark.skipif(not MOUNTS, reason="only root may mount")
@pytest.mark.parametrize(("part", "into"), [("commitlog", True), ("config/below", False)])
def test_output_in_a_store_is_refused_through_a_mount_of_a_folder_of_it(part: str, into: bool, tmp_path: Path) -> None:
    """into: a folder from elsewhere is mounted in the store, and the output is named by where that lies."""
    (tmp_path / "S" / "commitlog").mkdir(parents=True)
    (tmp_path / "S" / part).mkdir(parents=True, exist_ok=True)
    (tmp_path / "P" / "commitlog").mkdir(parents=True)
    (tmp_path / "M").mkdir()
    first, second = ("M", f"S/{part}") if into else (f"S/{part}", "M")
    run = "import sys, json; from jobs import entry\nfor words in json.loads(sys.argv[1]): print(entry.main(words), flush=True)"
    script = f'mount --bind {first} {second} && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-c", run, json.dumps(CASES)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(environment.ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["2"] * len(CASES), done.stderr
    assert all("lies inside the store" in line for line in done.stderr.splitlines()), done.stderr
    assert not os.listdir(tmp_path / "M")


def test_folders_are_the_same_by_device_and_inode(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a mount looks like, where none may be made."""
    (tmp_path / "mounted").mkdir()
    real = os.stat

    def stat(path: Any, **more: Any) -> os.stat_result:
        return real(store / "commitlog" if str(path) == f"{tmp_path}/mounted" else path, **more)

    monkeypatch.setattr(os, "stat", stat)
    with pytest.raises(UsageError, match=f"mounted/out' lies inside the store '{store}'"):
        audit(store, "--out", tmp_path / "mounted" / "out")
    monkeypatch.undo()
    audit(store, "--out", tmp_path / "mounted" / "out")

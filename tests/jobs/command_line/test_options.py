"""The command line: what is understood, and that every fault of it is one sentence before anything is read."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.command_line import options, parser
from jobs.command_line.options import AuditOptions, from_word, parse, to_word
from jobs.command_line.stores import StoreArgument
from jobs.environment import setup as environment
from store_io.base.errors import UsageError
from store_io.rules.releases import NEWEST_RELEASE


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    (path / "commitlog").mkdir(parents=True)
    return path


def audit(*words: str) -> AuditOptions:
    asked = parse(["audit", *map(str, words)]).audit
    assert asked is not None
    return asked


# ---- faults ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no command"),
        (["audti"], "did you mean audit?"),
        (["--mastr", "local[2]", "audit"], "did you mean --master?"),
        (["audit"], "no store"),
        (["audit", "S"], "--out DIR is missing"),
        (["audit", "S", "--out"], "--out needs a value"),
        (["audit", "S", "--out", "--release"], "--out needs a value"),
        (["audit", "S", "--out="], "--out needs a value"),
        (["audit", "S", "--out", "O", "--out", "P"], "--out is given twice"),
        (["audit", "S", "--out", "O", "--relase", "5.3.3"], "did you mean --release?"),
        (["audit", "S", "--out", "O", "-x"], "unknown option '-x'"),
        (["audit", "S", "--out", "O", "--verbose=1"], "--verbose takes no value"),
        (["audit", "S", "--out", "O", "--conf", "spark.ui.enabled"], "Spark wants key=value"),
        (["audit", "S", "--out", "O", "--master="], "--master needs a value"),
        (["audit", "S", "--out", "O", "--release", "4.7.1"], "only 4.8.0 to"),
        (["audit", "S", "--out", "O", "--release", "9.9.9"], "only 4.8.0 to"),
        (["audit", "S", "--out", "O", "--release", "five"], "not of the form"),
        (["audit", "S", "--out", "O", "--broker-conf", "nowhere.conf"], "No such file"),
        (["audit", "S", "--out", "O", "--fleet", "F"], "either STORE or --fleet"),
        (["audit", "--out", "O", "--fleet", "nowhere.toml"], "No such file"),
        (["audit", "--out", "O", "--fleet", "F", "--commitlog", "C"], "does not go with --fleet"),
        (["audit", "S", "T", "--out", "O", "--commitlog", "C"], "works with one store only"),
        (["audit", "S", "--out", "O", "--commitlog", "a,,b"], "an empty path"),
        (["audit", "S", "--out", "O", "--run-id", "a/b"], "--run-id"),
        (["audit", "S", "--out", "O", "--run-id", ".."], "--run-id"),
        (["audit", "S", "--out", "O", "--run-id", "x" * 101], "--run-id"),
        (["audit", "S", "--out", "O", "--write", "message"], "did you mean messages?"),
        (["audit", "S", "--out", "file://elsewhere/O"], "of this machine"),
        (["audit", "S\0", "--out", "O"], "a zero byte"),
        (["audit", "", "--out", "O"], "an empty store path"),
        (["pack"], "--out FILE"),
    ],
)
def test_a_fault_of_the_command_line_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


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
    for out in ("s3a://bucket/a/store/out", "s3://bucket/a/./store/", "s3://bucket/a"):
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
@pytest.mark.parametrize("part", ["commitlog", "config/below"])
@pytest.mark.parametrize("into", [False, True])
def test_output_in_a_store_is_refused_through_a_mount_of_a_folder_of_it(part: str, into: bool, tmp_path: Path) -> None:
    """into: a folder from elsewhere is mounted in the store, and the output is named by where that lies."""
    (tmp_path / "S" / "commitlog").mkdir(parents=True)
    (tmp_path / "S" / part).mkdir(parents=True, exist_ok=True)
    (tmp_path / "P" / "commitlog").mkdir(parents=True)
    (tmp_path / "M").mkdir()
    first, second = ("M", f"S/{part}") if into else (f"S/{part}", "M")
    run = "import sys, json; from jobs import cli\nfor words in json.loads(sys.argv[1]): print(cli.main(words), flush=True)"
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


def test_out_must_not_be_a_file(store: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="a file of that name"):
        audit(store, "--out", tmp_path / "out")


# ---- what is understood ----------------------------------------------------------------------------------------


def test_sparks_options_are_handed_on_unchanged_wherever_they_stand(store: Path, tmp_path: Path) -> None:
    words = ["--master", "yarn", "audit", str(store), "--conf=a=b c", "--out", str(tmp_path / "o"), "--verbose"]
    command = parse([*words, "--executor-memory", "2g", "--conf", "a=d"])
    assert command.spark == ("--master", "yarn", "--conf", "a=b c", "--verbose", "--executor-memory", "2g", "--conf", "a=d")
    assert parser.spark_setting(command.spark, "a") == "d"
    assert parser.spark_setting(command.spark, "spark.master", "--master") == "yarn"
    assert parser.spark_setting(command.spark, "b") is None
    assert command.audit is not None and [s.path for s in command.audit.stores] == [str(store)]


def test_words_after_two_dashes_are_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [s.path for s in audit("--out", "o", "--", "--x", "--out").stores] == [f"{tmp_path}/--x", f"{tmp_path}/--out"]


def test_defaults(store: Path, tmp_path: Path) -> None:
    asked = audit(store, "--out", tmp_path / "o")
    assert asked.stores == (StoreArgument("store", str(store), NEWEST_RELEASE, release_from="default"),)
    assert (asked.tables, asked.write) == (None, frozenset())
    assert asked.run_id != audit(store, "--out", tmp_path / "o").run_id


def test_all_options_of_one_store(store: Path, tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_bytes(b"brokerName=\xe4\nmaxIndexNum=5\n")
    asked = audit(
        *(f"file://{store}/", "--out", tmp_path / "o", "--release", "5.3.3", "--broker-conf", conf, "--run-id", "r.1-2_3"),
        *("--commitlog", f"{tmp_path}/a,{tmp_path}/b", "--index", tmp_path / "i", "--tables", "s3://b/t"),
        *("--write", "index,messages"),
    )
    parts = (("commitlog", (f"{tmp_path}/a", f"{tmp_path}/b")), ("index", (f"{tmp_path}/i",)))
    text = "brokerName=\xe4\nmaxIndexNum=5\n"
    assert asked.stores == (StoreArgument("store", str(store), "5.3.3", text, None, parts, broker_conf_file=str(conf)),)
    assert (asked.run_id, asked.tables, asked.write) == ("r.1-2_3", "s3://b/t", {"index", "messages"})


def test_a_broker_conf_may_come_through_a_pipe(store: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"maxIndexNum=5\n")
    os.close(writer)
    assert audit(store, "--out", tmp_path / "o", "--broker-conf", f"/dev/fd/{reader}").stores[0].broker_conf == "maxIndexNum=5\n"
    os.close(reader)


@pytest.mark.parametrize("kind", ["a FIFO", "a directory", "a device"])
def test_what_is_no_file_is_refused_at_once(kind: str, store: Path, tmp_path: Path) -> None:
    place = Path("/dev/zero") if kind == "a device" else tmp_path / "place"
    if kind == "a FIFO":
        os.mkfifo(place)
    elif kind == "a directory":
        place.mkdir()
    with pytest.raises(UsageError, match=f"^--broker-conf .*: {kind}, not a file$"):
        audit(store, "--out", tmp_path / "o", "--broker-conf", place)
    with pytest.raises(UsageError, match=f"^--fleet .*: {kind}, not a file$"):
        audit("--fleet", place, "--out", tmp_path / "o")
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(f'[[store]]\npath = "y"\nbroker_conf = "{place}"\n')
    problem = audit("--fleet", fleet, "--out", tmp_path / "o").stores[0].problem
    assert problem is not None and problem.endswith(f": {kind}, not a file")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("store", "store"),
        ("a b/ü", "a%20b%2F%C3%BC"),
        ("100%", "100%25"),
        ("a\x1b[31m", "a%1B%5B31m"),
        ("tables", "tables-2"),
        (".", ".-2"),
        ("..", "..-2"),
        ("result.json", "result.json-2"),
        ("index.html", "index.html-2"),
        ("ü" * 200, "%C3%BC" * 33),
    ],
)
def test_a_name_becomes_a_folder(name: str, folder: str, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    quoted = name.replace("\x1b", "\\u001b")
    fleet.write_text(f'[[store]]\nname = "{quoted}"\npath = "p"\n', "utf-8")
    assert [store.name for store in audit("--fleet", fleet, "--out", tmp_path / "o").stores] == [folder]


def test_names_are_unique_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    names = [s.name for s in audit("a/store", "b/store-2", "b/store/", "store", "s3://bucket/", "--out", "o").stores]
    assert names == ["store", "store-2", "store-3", "store-4", "bucket"]
    monkeypatch.chdir(tmp_path / "here")
    assert [s.name for s in audit(".", "--out", "../o").stores] == ["here"]


@pytest.mark.parametrize(
    "name", ["tables", "result.json", "index.html", "replicas.json", ".lock", "run.lock", ".x.writing", ".result.json.0.writing"]
)
def test_a_name_that_the_folder_of_results_uses_itself_is_taken(name: str, tmp_path: Path) -> None:
    assert [s.name for s in audit(name, f"b/{name}", "--out", tmp_path / "o").stores] == [f"{name}-2", f"{name}-3"]


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    assert audit(os.fsdecode(bytes(tmp_path) + b"/\xff"), "--out", tmp_path / "o").stores[0].name == "%FF"


# ---- fleets ----------------------------------------------------------------------------------------------------


def test_a_bad_row_of_a_fleet_is_that_stores_problem(tmp_path: Path) -> None:
    fleet = tmp_path / "fleets" / "fleet.toml"
    fleet.parent.mkdir()
    (fleet.parent / "b.conf").write_text("a=b\n")
    good = 'name = "good"\npath = "../x"\nrelease = "5.3.3"\nbroker_conf = "b.conf"\nreplica_group = "g"\ncommitlog = ["c", "d"]'
    rows = {
        good: None,
        'path = "y"\nindex = "i"': None,
        'name = "p"': "path is missing",
        'path = ""': "path must be a text",
        "path = 3": "path must be a text",
        'path = "y"\nname = ""': "name must be a text",
        'path = "y"\nrelease = "1.0.0"': "only 4.8.0",
        'path = "y"\nrelease = 5': "release must be a text",
        'path = "y"\nrelase = "5.3.3"': "did you mean release?",
        'path = "y"\nbroker_conf = "nowhere"': "No such file",
        'path = "y"\ncommitlog = []': "commitlog must be",
        'path = "y\\u0000"': "a zero byte",
    }
    fleet.write_text("".join(f"[[store]]\n{row}\n" for row in rows))
    stores = audit("--fleet", fleet, "--out", tmp_path / "o", "--release", "4.9.8").stores
    base = str(fleet.parent)
    parts = (("commitlog", (f"{base}/c", f"{base}/d")),)
    assert stores[0] == StoreArgument(
        "good", f"{tmp_path}/x", "5.3.3", "a=b\n", "g", parts, broker_conf_file=stores[0].broker_conf_file, named=True
    )
    assert Path(str(stores[0].broker_conf_file)).read_text() == "a=b\n"
    assert stores[1] == StoreArgument("y", f"{base}/y", "4.9.8", parts=(("index", (f"{base}/i",)),))
    for number, (store, problem) in enumerate(zip(stores, rows.values(), strict=True), 1):
        if problem is None:
            assert store.problem is None
        else:
            assert store.problem is not None and problem in store.problem and f"store {number} " in store.problem
    assert len({store.name for store in stores}) == len(stores)
    assert {store.release_from for store in stores} == {"named"}
    unnamed = audit("--fleet", fleet, "--out", tmp_path / "o").stores
    assert [store.release_from for store in unnamed[:2]] == ["named", "default"]


@pytest.mark.parametrize("text", ["", "store = 3", "store = []", "[[store]\n", "\xff", "[[stores]]\npath='x'"])
def test_a_fleet_file_without_stores_is_a_fault_of_the_command_line(text: str, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="fleet"):
        audit("--fleet", fleet, "--out", tmp_path / "o")


def test_a_row_that_is_no_table(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('store = [3, {path = "x"}]')
    first, second = audit("--fleet", fleet, "--out", tmp_path / "o").stores
    assert first.problem == "store 1 of the fleet file is no table"
    assert second.problem is None


def test_options_travel_as_one_word(tmp_path: Path) -> None:
    parts = (("commitlog", ("/a", "/b")),)
    store = StoreArgument("n", "/p\udcff", "5.3.3", "a=b\n\xe4", "g", parts, "why", "/c")
    asked = AuditOptions((store,), "/o", "s3://t", "id", frozenset({"index"}), True, True)
    word = options.to_word(asked)
    assert word.isascii() and not set(word) & set(" '\"$`\\")
    assert options.from_word(word) == asked


@pytest.mark.parametrize(
    ("words", "level", "seconds", "since"),
    [
        ([], "full", None, None),
        (["--level", "quick"], "quick", None, None),
        (["--max-duration", "90s"], "full", 90, None),
        (["--max-duration=1.5h", "--level", "quick"], "quick", 5400, None),
        (["--max-duration", "30m", "--since-run", "last"], "full", 1800, "last"),
        (["--since-run", "night-7"], "full", None, "night-7"),
    ],
)
def test_how_much_is_read(
    words: list[str], level: str, seconds: float | None, since: str | None, store: Path, tmp_path: Path
) -> None:
    asked = audit(str(store), "--out", str(tmp_path / "out"), *words)
    assert (asked.level, asked.max_seconds, asked.since_run) == (level, seconds, since)
    assert from_word(to_word(asked)) == asked


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--level", "deep"], "--level 'deep': must be full or quick"),
        (["--max-duration", "30"], "--max-duration '30': must be a number with s, m or h"),
        (["--max-duration", "-5m"], "--max-duration '-5m': must be a number with s, m or h"),
        (["--max-duration", "1e3s"], "--max-duration '1e3s': must be a number with s, m or h"),
        (["--since-run", "../x"], "--since-run '../x': must be the id of an earlier run, or last"),
        (["--since-run", "a", "--run-id", "a"], "--since-run 'a': must be the id of an earlier run, or last"),
        (["--since-run", "last", "--level", "quick"], "--since-run does not go with --level quick"),
        (["--write", "messages", "--level", "quick"], "--write has to read every segment"),
        (["--write", "index", "--max-duration", "2h"], "it does not go with --max-duration"),
        (["--progress", "loud"], "--progress 'loud': must be one of line, json, none"),
    ],
)
def test_what_does_not_go_together(words: list[str], sentence: str, store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        parse(["audit", str(store), "--out", str(tmp_path / "out"), *words])


@pytest.mark.parametrize(("how", "line", "objects"), [("line", True, False), ("json", False, True), ("none", False, False)])
def test_how_progress_is_told(how: str, line: bool, objects: bool, store: Path, tmp_path: Path) -> None:
    asked = audit(str(store), "--out", str(tmp_path / "out"), "--progress", how)
    assert (asked.progress, asked.progress_json) == (line, objects)

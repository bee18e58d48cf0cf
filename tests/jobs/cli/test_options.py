"""A command line as plain data, with its secrets hidden from `ps`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli import options
from jobs.cli.command_table import COMMAND_TABLE
from jobs.cli.options import AuditOptions, from_word, parse, to_word
from jobs.cli.parser import Option
from jobs.cli.stores import StoreArgument
from jobs.installation import ROOT
from store_io.base.errors import UsageError
from store_io.broker.releases import KNOWN_RELEASES, NEWEST_RELEASE
from tests.jobs.cli.conftest import audit

CODE = """
import sys
from jobs.cli import options as title
title.hide([sys.argv[1].partition("=")[2], "", "ä"])
print(open("/proc/self/cmdline", "rb").read().split(b"\\0")[-4:-1], sys.argv[1:])
"""


# ---- faults ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no command"),
        (["--version", "x"], "--version takes no other word, as 'x'"),
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
        (["audit", "S", "--out", "O", "--pakages", "x"], "did you mean --packages?"),
        (["repair", "S", "--yes"], "unknown option '--yes': repair needs none"),
        (["rescue", "S", "--fix-config"], "unknown option '--fix-config': rescue chooses"),
        (["audit", "S", "--out", "O", "--verbose=1"], "--verbose takes no value"),
        (["audit", "S", "--out", "O", "--conf", "spark.ui.enabled"], "Spark wants key=value"),
        (["audit", "S", "--out", "O", "--master="], "--master needs a value"),
        (["audit", "S", "--out", "O", "--release", "4.6.0"], "none before 4.6.1 is known"),
        (["audit", "S", "--out", "O", "--release", "5.5"], "not of the form"),
        (["audit", "S", "--out", "O", "--release", "five"], "not of the form"),
        (["audit", "S", "--out", "O", "--release", "all", "--level", "quick"], "does not go with --level"),
        (["audit", "S", "--out", "O", "--release", "5.3.3,all"], "all goes alone"),
        (["audit", "S", "--out", "O", "--release", "all,3.9.9"], "release 'all,3.9.9': all goes alone"),
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


def test_out_must_not_be_a_file(store: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="a file of that name"):
        audit(store, "--out", tmp_path / "out")


# ---- what is understood ----------------------------------------------------------------------------------------


def test_words_after_two_dashes_are_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [s.path for s in audit("--out", "o", "--", "--x", "--out").stores] == [f"{tmp_path}/--x", f"{tmp_path}/--out"]


def test_defaults(store: Path, tmp_path: Path) -> None:
    asked = audit(store, "--out", tmp_path / "o")
    assert asked.stores == (StoreArgument("store", str(store), NEWEST_RELEASE, release_from="default"),)
    assert (asked.tables, asked.write) == (None, frozenset())
    assert asked.run_id != audit(store, "--out", tmp_path / "o").run_id


@pytest.mark.parametrize("several", [False, True])
def test_a_release_that_is_not_known_takes_known_rules_and_is_remembered(store: Path, tmp_path: Path, several: bool) -> None:
    asked = "5.6.0, 5.3.9,5.5.1" if several else " 5.6.0"
    [own] = audit(store, "--out", tmp_path / "o", "--release", asked).stores
    assert (own.release, own.release_from) == (NEWEST_RELEASE, "5.6.0")
    assert own.releases == ((NEWEST_RELEASE, "5.3.9") if several else ())


def test_several_releases_are_compared_and_the_first_of_a_list_is_the_stores_own(store: Path, tmp_path: Path) -> None:
    [every] = audit(store, "--out", tmp_path / "o", "--release", "all").stores
    assert (every.release, every.release_from, every.releases) == (NEWEST_RELEASE, "default", KNOWN_RELEASES)
    [some] = audit(store, "--out", tmp_path / "o", "--release", "4.9.8, 5.4.0,4.9.8").stores
    assert (some.release, some.release_from, some.releases) == ("4.9.8", "named", ("4.9.8", "5.4.0"))
    [one] = audit(store, "--out", tmp_path / "o", "--release", "4.9.8").stores
    assert (one.release, one.releases) == ("4.9.8", ())
    with pytest.raises(UsageError, match="not of the form"):
        options.single_store(options.parse(["explain", str(store), "--phy-offset", "0", "--release", "all"]))


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
        (["--max-duration", "30"], "--max-duration '30': must be a number with s, m or h"),
        (["--max-duration", "-5m"], "--max-duration '-5m': must be a number with s, m or h"),
        (["--max-duration", "1e3s"], "--max-duration '1e3s': must be a number with s, m or h"),
        (["--since-run", "../x"], "--since-run '../x': must be the id of an earlier run, or last"),
        (["--since-run", "a", "--run-id", "a"], "--since-run 'a': must be the id of an earlier run, or last"),
        (["--since-run", "last", "--level", "quick"], "--since-run does not go with --level quick"),
        (["--write", "messages", "--level", "quick"], "--write has to read every segment"),
        (["--write", "index", "--max-duration", "2h"], "it does not go with --max-duration"),
    ],
)
def test_what_does_not_go_together(words: list[str], sentence: str, store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        parse(["audit", str(store), "--out", str(tmp_path / "out"), *words])


@pytest.mark.parametrize(
    ("command", "option"), [(name, option) for name, spec in COMMAND_TABLE.items() for option in spec.options if option.choices]
)
def test_an_option_with_choices_takes_no_other_word(command: str, option: Option) -> None:
    with pytest.raises(UsageError, match=f"^{option.name} 'x': must be .*{option.choices[-1]}$"):
        parse([command, option.name, "x"])


@pytest.mark.parametrize(("how", "line", "objects"), [("line", True, False), ("json", False, True), ("none", False, False)])
def test_how_progress_is_told(how: str, line: bool, objects: bool, store: Path, tmp_path: Path) -> None:
    asked = audit(str(store), "--out", str(tmp_path / "out"), "--progress", how)
    assert (asked.progress, asked.progress_json) == (line, objects)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process change its title so")
def test_words_are_overwritten_for_others_and_not_for_itself() -> None:
    words = ["key=s3cr3t", "and-s3cr3t-again", "ä"]
    done = subprocess.run([sys.executable, "-c", CODE, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"{[b'key=******', b'and-******-again', b'**']} {words}\n"

"""The stores that a command line or a fleet file names, and their folders under --out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.cli.stores import FLEET_BYTES, StoreArgument
from store_io.base.errors import UsageError
from tests.jobs.cli.conftest import audit


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
        'path = "y"\nrelease = "1.0.0"': "none before 4.6.1",
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


def test_a_row_may_name_a_release_that_is_not_known(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[store]]\npath = "p"\nrelease = "5.3.9"\n[[store]]\npath = "q"\nrelease = "4.0.0"\n')
    taken, refused = audit("--fleet", fleet, "--out", tmp_path / "o", "--release", "5.1.4").stores
    assert (taken.release, taken.release_from, taken.problem) == ("5.3.4", "5.3.9", None)
    assert refused.problem is not None and "none before" in refused.problem


@pytest.mark.parametrize("text", ["", "store = 3", "store = []", "[[store]\n", "\xff", "[[stores]]\npath='x'"])
def test_a_fleet_file_without_stores_is_a_fault_of_the_command_line(text: str, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="fleet"):
        audit("--fleet", fleet, "--out", tmp_path / "o")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("store = " + "[" * 100_000, "no TOML: it is nested too deeply"),
        ("store = " + "{a=" * 100_000, "no TOML: it is nested too deeply"),
        ("store = " + "9" * 5000, "no TOML: it has a number of too many digits"),
        ("store = 1979-99-99", "no TOML: "),
        ("#" * (FLEET_BYTES + 1), "more than 16,777,216 bytes"),
    ],
    ids=["lists", "tables", "digits", "date", "bytes"],
)
def test_a_fleet_file_that_no_parser_takes_is_a_usage_error(text: str, said: str, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(text)
    with pytest.raises(UsageError) as problem:
        audit("--fleet", fleet, "--out", tmp_path / "o")
    assert str(problem.value).startswith(f"--fleet '{fleet}': {said}")


def test_a_row_that_is_no_table(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('store = [3, {path = "x"}]')
    first, second = audit("--fleet", fleet, "--out", tmp_path / "o").stores
    assert first.problem == "store 1 of the fleet file is no table"
    assert second.problem is None


@pytest.mark.parametrize("several", ["all", "5.3.3,5.4.0"])
def test_several_releases_of_a_row_belong_on_the_command_line(tmp_path: Path, several: str) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(f'[[store]]\npath = "p"\nrelease = "{several}"\n')
    [store] = audit("--fleet", fleet, "--out", tmp_path / "o").stores
    assert store.problem is not None and f"use --release {several} on the command line" in store.problem

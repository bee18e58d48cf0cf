"""Nights over one store whose copy loses its messages: what the tables of the nights before make of it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import run_audit as audit
from jobs.cli import options
from jobs.runtime.session import Session
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

pytestmark = pytest.mark.spark


class Nights:
    """Audits of one place into one set of tables."""

    def __init__(self, session: Session, place: Path, named: bool = True):
        self._session, self.place = session, place
        self.store = place / "broker-a"
        name = 'name = "broker-a"\n' if named else ""
        (place / "fleet.toml").write_text(f'[[store]]\n{name}path = "broker-a"\nrelease = "5.3.3"\n')

    def copy(self, count: int, first: int = 0) -> Store:
        """A copy of the broker's store with these messages, in place of the one before."""
        shutil.rmtree(self.store, ignore_errors=True)
        builder = StoreBuilder("5.3.3", Sizes(segment=1 << 13))
        builder.clock += first * 10
        for number in range(first, first + count):
            builder.clock += 10
            builder.put(Message("T", number % 2, bytes(200), uniq=f"U{number:03}"))
        return builder.write(self.store)

    def empty(self) -> None:
        """Leave of the copy what a new broker has."""
        for part in ("commitlog", "consumequeue", "index", "config"):
            shutil.rmtree(self.store / part, ignore_errors=True)
        (self.store / "commitlog").mkdir()
        (self.store / "checkpoint").write_bytes(bytes(4096))

    def night(self, run_id: str, out: str = "out") -> dict[str, Any]:
        """The store's part of result.json, with the run's problems and the findings about an emptied log."""
        words = [
            "audit",
            "--fleet",
            f"{self.place}/fleet.toml",
            "--out",
            f"{self.place}/{out}",
            "--run-id",
            run_id,
            "--start-at",
            "2026-11-28T15:24:15Z",
        ]
        asked = options.parse([*words, "--tables", f"{self.place}/tables"]).audit
        assert asked is not None
        code = audit.run_with(self._session, asked)
        result = json.loads((self.place / out / "result.json").read_text())
        (store,) = result["stores"]
        assert code == result["exit_code"]
        self.files = [(self.place / out / "broker-a" / name).read_bytes() for name in ("plan.json", "findings.jsonl")]
        found = [json.loads(line) for line in self.files[1].splitlines()]
        told = [(f["code"], f["severity"]) for f in found if f["code"].startswith("commitlog_")]
        return {**store, "exit_code": code, "problems": result["problems"], "told": told}


def test_an_emptied_copy_is_told_every_night(spark_session: Session, tmp_path: Path) -> None:
    nights = Nights(spark_session, tmp_path)
    whole = nights.copy(60)
    end = whole.records[-1].at + whole.records[-1].size
    first = nights.night("n1")
    assert (first["code"], first["told"], first["emptied"], first["earlier"]) == (0, [], False, None)
    second = nights.night("n2")
    assert (second["code"], second["told"]) == (0, []) and second["earlier"]["messages"] == 60

    nights.empty()
    third = nights.night("n3")
    assert third["told"] == [("commitlog_empty", "note"), ("commitlog_shrunk", "loss")]
    assert (third["code"], third["emptied"], third["messages"]) == (20, True, 0)
    assert third["earlier"] | {"started_at": ""} == {"run_id": "n2", "started_at": "", "messages": 60, "log_end": end}
    assert third["verdict"].startswith("Nothing to lose is left here; the audit of ") and "saw 60 messages" in third["verdict"]
    files = nights.files
    page = (tmp_path / "out" / "broker-a" / "report.html").read_text()
    assert "Nothing to lose is left here; the audit of" in page and "Safe to start" not in page

    # The night after, the last run saw nothing either; and a run that is repeated does not count its own rows.
    for run in ("n4", "n3"):
        again = nights.night(run)
        assert (again["code"], nights.files) == (20, files), run

    shutil.rmtree(nights.store)  # not even commitlog/ is left, as where a disk is not mounted
    nights.store.mkdir()
    bare = nights.night("n5")
    assert (bare["code"], bare["emptied"], bare["earlier"]["messages"]) == (20, True, 60)
    assert ("commitlog_shrunk", "loss") in bare["told"] and f"{nights.store} is an empty folder now" in bare["verdict"]

    nights.copy(60)  # the copy is there again
    back = nights.night("n6")
    assert (back["code"], back["told"], back["emptied"]) == (0, [], False)


def test_bytes_that_changed_under_the_same_time_are_told_every_night(spark_session: Session, tmp_path: Path) -> None:
    nights = Nights(spark_session, tmp_path)
    nights.copy(60)
    assert [nights.night(run)["code"] for run in ("n1", "n2")] == [0, 0]
    path = sorted((nights.store / "commitlog").iterdir())[1]
    whole, times = path.read_bytes(), path.stat()

    def put(data: bytes) -> None:
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    put(whole[:55] + bytes([whole[55] ^ 1]) + whole[56:])  # the born host's port: no other check looks at it
    for run in ("n3", "n4"):
        changed = nights.night(run)
        (finding,) = [json.loads(line) for line in nights.files[1].splitlines()]
        assert (finding["code"], finding["severity"], "run n1 read" in finding["message"]) == ("segment_changed", "loss", True)
        assert (changed["code"], changed["changed_segments"], changed["answer"]) == (20, 1, "copy_again")
    put(whole)
    assert nights.night("n5")["code"] == 0


def test_a_repeated_run_ignores_what_it_saw_itself_and_what_came_later(spark_session: Session, tmp_path: Path) -> None:
    nights = Nights(spark_session, tmp_path)
    nights.copy(60)
    nights.night("n1")
    nights.night("n2")
    nights.empty()
    again = nights.night("n1")
    assert (again["code"], again["told"], again["earlier"]) == (0, [("commitlog_empty", "note")], None)


def test_an_end_that_goes_back_and_a_log_that_grew(spark_session: Session, tmp_path: Path) -> None:
    nights = Nights(spark_session, tmp_path, named=False)
    nights.copy(60)
    nights.night("n1")
    nights.copy(90)
    assert nights.night("n2")["told"] == []
    nights.copy(70)
    back = nights.night("n3")
    assert back["told"] == [("commitlog_shrunk", "loss")] and back["earlier"]["run_id"] == "n2"
    nights.copy(70, first=5000)  # another broker's store, in the same place and without a name
    other = nights.night("n4")
    assert (other["code"], other["told"], other["emptied"]) == (0, [("commitlog_shrunk", "note")], False)
    shutil.move(nights.store, tmp_path / "elsewhere")
    nights.store = tmp_path / "elsewhere" / "broker-a"
    nights.copy(10)
    (tmp_path / "fleet.toml").write_text('[[store]]\npath = "elsewhere/broker-a"\nrelease = "5.3.3"\n')
    assert nights.night("n5")["told"] == []  # a folder of the same name is not the same store


def test_tables_that_cannot_be_read_are_told(spark_session: Session, tmp_path: Path) -> None:
    nights = Nights(spark_session, tmp_path)
    nights.copy(20)
    nights.night("n1")
    for path in (tmp_path / "tables" / "runs").rglob("*.parquet"):
        path.write_bytes(b"no Parquet")
    second = nights.night("n2")
    assert second["code"] == 0 and second["exit_code"] == 3
    assert [p for p in second["problems"] if p.startswith("what earlier runs saw of the stores is not known: ")]

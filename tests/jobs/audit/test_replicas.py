"""Copies of one log through a whole run: files, table, terminal, pages; and how stores are put together for it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.audit import run_audit as audit
from jobs.cli import options
from jobs.cli.terminal import GREEN
from jobs.report.files.ci_files import junit_xml
from jobs.runtime.session import Session
from jobs.tables.delta_tables import Tables
from tests.schemas.test_json_schemas import faults
from tests.support import damage
from tests.support.stores.builders import Message, Sizes, StoreBuilder


def fleet(root: Path) -> Path:
    """Two copies, the second with a damaged body and 20 messages less; a row of their group that is no store; one store alone."""
    stores = []
    for count in (60, 40):
        builder = StoreBuilder("5.3.3", Sizes(segment=1 << 13))
        for number in range(count):
            builder.clock += 10
            builder.put(Message("T", number % 2, bytes(200), uniq=f"U{number:03}"))
        stores.append(builder.write(root / f"copy{count}"))
    record = stores[1].records[10]
    damage.invert_byte(stores[1].segment_of(record), stores[1].position_of(record) + 100)
    shutil.copytree(stores[0].root, root / "alone")
    rows = ""
    for name, path, group in (("m", "copy60", "g"), ("s", "copy40", "g"), ("x", "nothing", "g"), ("alone", "alone", "")):
        (root / f"{name}.conf").write_text(stores[0].broker_conf)
        rows += f'[[store]]\nname = "{name}"\npath = "{path}"\nrelease = "5.3.3"\nbroker_conf = "{name}.conf"\n'
        rows += f'replica_group = "{group}"\n' if group else ""
    (root / "fleet.toml").write_text(rows)
    return root / "fleet.toml"


@pytest.mark.spark
def test_a_run_compares_the_copies_of_a_group(spark_session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    asked = options.parse(["audit", "--fleet", str(fleet(tmp_path)), "--out", str(out)]).audit
    assert asked is not None
    assert audit.run_with(spark_session, asked) == 20
    text = (out / "replicas.json").read_text()
    assert faults("replicas", text) == []
    (group,) = json.loads(text)["groups"]
    assert [(c["store"], c["lacks"]) for c in group["copies"]] == [("m", 0), ("s", 21)] and group["best"] == "m"
    assert [store["code"] for store in json.loads((out / "result.json").read_text())["stores"]] == [0, 20, 3, 0]
    said = capsys.readouterr().out
    assert "Replicas   g: start m as master: m would lose 0 messages" in said
    assert "m and s are equal up to physical offset" in said and "in BODY of the message of T/0" in said
    assert group["problems"] == ["x: not compared, it could not be audited"] and group["problems"][0] in said
    page = (out / "s" / "report.html").read_text()
    assert "Other copies of this log" in page and "m holds 21 messages of 2 queues that s lacks" in page
    assert "Other copies of this log" not in (out / "alone" / "report.html").read_text()
    parts = Tables(spark_session, f"{out}/tables").read("replica_parts").orderBy("start").collect()
    assert [(p["store"], p["holder"], p["other_has"], p["messages"]) for p in parts] == [
        ("s", "m", "damaged", 1), ("s", "m", "beyond", 20),
    ]  # fmt: skip
    codes = [json.loads(line)["code"] for line in (out / "s" / "findings.jsonl").read_text().splitlines()]
    assert codes.count("replica_holds") == 1

    # Another run into the same folder, of stores that are no copies, leaves nothing of the first.
    alone = options.parse(["audit", str(tmp_path / "alone"), "--release", "5.3.3", "--out", str(out)]).audit
    assert alone is not None
    audit.run_with(spark_session, alone)
    assert not (out / "replicas.json").exists()


@pytest.mark.spark
def test_copies_that_nobody_grouped_are_compared_and_diverged_ones_are_never_green(
    spark_session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, last in (("one", b"1"), ("two", b"2")):
        builder = StoreBuilder("5.3.3", Sizes(segment=1 << 13))
        for number in range(30):
            builder.clock += 10
            builder.put(Message("T", 0, bytes(200) if number < 20 else last * 200, uniq=f"U{number:03}{last * (number >= 20)!r}"))
        store = builder.write(tmp_path / name)
    (tmp_path / "broker.conf").write_text(store.broker_conf)
    settings = ["--release", "5.3.3", "--broker-conf", str(tmp_path / "broker.conf"), "--out", str(tmp_path / "out")]
    asked = options.parse(["audit", str(tmp_path / "one"), str(tmp_path / "two"), *settings]).audit
    assert asked is not None
    audit.run_with(spark_session, replace(asked, color=True))
    said = capsys.readouterr().out
    assert "one, two are copies of one log" in said and "compared as group log-of-one" in said
    assert (
        said.count("diverged") >= 2
        and said.count("other_copy") == 2
        and "safe to start" not in said
        and GREEN not in said
        and " 2 consistent" not in said
    )
    (group,) = json.loads((tmp_path / "out" / "replicas.json").read_text())["groups"]
    assert [pair["relation"] for pair in group["pairs"]] == ["diverged"]
    assert "c-safe" not in (tmp_path / "out" / "one" / "report.html").read_text().partition("</dl>")[0].rpartition("<dl")[2]
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [store["diverged"] for store in result["stores"]] == [True, True]
    assert 'failures="2"' in junit_xml(result)

    row = '[[store]]\npath = "{}"\nrelease = "5.3.3"\nbroker_conf = "broker.conf"\n'
    (tmp_path / "fleet.toml").write_text(row.format("one") + row.format("two"))
    asked = options.parse(["audit", "--fleet", str(tmp_path / "fleet.toml"), "--out", str(tmp_path / "out")]).audit
    assert asked is not None
    audit.run_with(spark_session, asked)
    assert "they were not compared: give them one replica_group" in " ".join(capsys.readouterr().out.split())

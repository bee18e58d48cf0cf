"""Copies of one log through a whole run: files, table, terminal, pages; and how stores are put together for it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.audit import run_audit as audit
from jobs.command_line import options
from jobs.command_line.options import StoreArgument
from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import report_html
from jobs.report.texts.replicas_words import pair_words
from jobs.report.texts.summary_text import summary_text
from jobs.session import Session
from jobs.tables.delta_tables import Tables
from schemas.rows import AuditOutcome
from tests.schemas.test_json_schemas import faults
from tests.support import damage, samples
from tests.support.builders import Message, Sizes, StoreBuilder


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
    parts = Tables(spark_session.spark, f"{out}/tables").read("replica_parts").orderBy("start").collect()
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


def test_the_copies_of_a_group_are_audited_together() -> None:
    def store(number: int, group: str = "") -> StoreArgument:
        return StoreArgument(f"s{number}", f"/{number}", "5.3.3", replica_group=group or None)

    stores = [store(0), store(1, "g"), store(2), store(3, "h"), store(4), store(5, "g"), store(6, "h"), store(7)]
    found = [[number for number, _ in batch] for batch in audit.batches(stores, 2)]
    assert found == [[0, 1, 5], [2, 3, 6], [4, 7]]
    assert [[number for number, _ in batch] for batch in audit.batches(stores)] == [list(range(8))]
    assert list(audit.batches([])) == []


def hostile_group(name: str) -> dict[str, object]:
    bad = "<script>\x1b[31m"
    first = {
        "phy_offset": 9, "message": 1, "size": 300, "field": "BODY", "topic": bad, "queue_id": 0, "queue_offset": 3,
        "holder": name, "other": bad, "other_has": "damaged",
    }  # fmt: skip
    copy = {"start": 0, "end": 10, "messages": 5, "lacks": 1, "cut": None, "loses": None, "complete": True, "starts": None}
    part = {
        "start": 1,
        "end": 301,
        "other_has": "damaged",
        "messages": 1,
        "bytes": 300,
        "first_store_time": 1,
        "last_store_time": 2,
    }
    return {
        "group": bad, "best": None, "why": f"{bad} is not known to start.", "problems": [bad],
        "copies": [{"store": name, **copy}, {"store": bad, **copy}],
        "pairs": [{"left": name, "right": bad, "relation": "damaged", "same_until": 9, "first_difference": first}],
        "lacks": [{"store": name, "holder": bad, "messages": 1, "bytes": 300, "by_queue": [{}], "ranges": [part] * 200}],
    }  # fmt: skip


def test_hostile_names_stay_text() -> None:
    one, other = samples.clean(), samples.clean()
    other = replace(other, name="b")
    for outcome in (one, other):
        outcome.replicas = hostile_group(one.name)
        outcome.replica_group = str(outcome.replicas["group"])
    page = "".join(report_html(one)).partition('<section id="replicas"')[2].partition("</section>")[0]
    assert "<script>" not in page and "\x1b" not in page and "&lt;script&gt;" in page
    assert page.count("<tr>") < 110  # bounded
    index = "".join(index_html(samples.RUN, [one, other]))
    assert "<script>" not in index and "\x1b" not in index and "is not known to start." in index
    text = summary_text(samples.RUN, [one, other], "out")
    assert "\x1b" not in text and "Replicas" in text


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("equal", "a and b are equal up to physical offset 1,234"),
        ("behind", "a and b are equal up to physical offset 1,234, where one of them ends"),
        ("apart", "a and b have no physical offset in common"),
        ("unknown", "a and b could not be compared completely"),
    ],
)
def test_words_for_two_copies(relation: str, words: str) -> None:
    pair = {"left": "a", "right": "b", "relation": relation, "same_until": 1234, "first_difference": None}
    assert pair_words(pair) == words


def test_without_a_group_nothing_is_said() -> None:
    outcomes: list[AuditOutcome] = [samples.clean(), samples.damaged()]
    assert "Replicas" not in summary_text(samples.RUN, outcomes, "out")

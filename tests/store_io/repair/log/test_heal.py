"""repair --heal: what it writes, says and leaves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from jobs.report.files.json_text import document
from schemas.layouts.store_names import REPORT_SUFFIX
from tests.support import damage
from tests.support.answers import product
from tests.support.answers.repaired import numbers, plan_of, previewed, repaired, written
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.small_repairs import SIZES

TIME = 1_700_000_000_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, bytes]]:
    """A store with one bit wrong in a body, a physical offset elsewhere, and a lost piece; and its segments before."""
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(60):
        builder.put(Message("TopicA", 0, bytes([number]) * 60, tags="a", uniq=f"{number:032X}", born_time=TIME))
    made = builder.write(tmp_path_factory.mktemp("heal") / "store")
    folder = made.root / "commitlog"
    before = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    size = int.from_bytes(before[f"{0:020d}"][:4], "big")
    first, second = folder / f"{0:020d}", folder / f"{4096:020d}"
    damage.invert_byte(first, 3 * size + 100, 4)  # a bit of a body
    damage.overwrite(second, 5 * size + 28, bytes(4) + b"\x01\x00\x00\x00")  # PHYSICALOFFSET
    damage.zero_range(second, 9 * size + 50, 9 * size + 149)  # nothing can be done
    return made.root, made.broker_conf, before


@pytest.mark.parametrize("policy", ["broker", "salvage"])
def test_healed_records_are_what_was_written(store: tuple[Path, str, dict[str, bytes]], policy: str, tmp_path: Path) -> None:
    root, conf, before = store
    plan = plan_of(root, "5.3.3", conf)
    target = tmp_path / "new"
    dry = previewed(root, target, plan, policy, heal_risk=1e-4)
    outcome = repaired(root, target, plan, policy, heal_risk=1e-4)
    assert outcome.exit_code == 0 and numbers(dry) == outcome.report
    healed = outcome.report.healed
    assert healed is not None
    assert [record.field for record in healed.records] == ["BODY", "PHYSICALOFFSET"] and healed.more == 0
    assert [record.field for record in healed.not_healed] == [None] and healed.not_healed_count == 1
    assert healed.total_risk == sum(record.risk or 0 for record in healed.records) > 0
    assert outcome.report.messages_before == previewed(root, target, plan, policy).report.messages_before
    for record in healed.records:
        new = (target / record.file).read_bytes()
        at = slice(record.start, record.end)
        assert new[at] == before[Path(record.file).name][at]
        old = (root / record.file).read_bytes()[record.position :][: len(record.old or "") // 2]
        assert old.hex() == record.old and new[record.position :][: len(old)].hex() == record.new
    steps = [step.action for step in outcome.report.steps]
    assert steps[:3] == ["copy", "heal", "heal"] and "bridge" in steps and outcome.report.steps_from == "copy"


def test_an_audit_of_the_new_store_marks_them(store: tuple[Path, str, dict[str, bytes]], tmp_path: Path) -> None:
    root, conf, _ = store
    outcome = repaired(root, tmp_path / "new", plan_of(root, "5.3.3", conf), "salvage", heal_risk=1e-4)
    text = document(written(outcome.report))
    (tmp_path / f"new{REPORT_SUFFIX}").write_text(text, "utf-8")
    notes = [f for f in product.audit(tmp_path / "new", "5.3.3", conf).findings if f.code == "message_healed"]
    assert [f.phy_offset for f in notes] == [row.phy_offset for row in outcome.report.healed_records]
    assert [(f.start, f.end) for f in notes] == [(r.start, r.end) for r in outcome.report.healed_records]


def test_a_report_marks_whole_messages_and_nothing_else(store: tuple[Path, str, dict[str, bytes]], tmp_path: Path) -> None:
    """Its ranges are input like any other."""
    root, conf, _ = store
    report = repaired(root, tmp_path / "new", plan_of(root, "5.3.3", conf), "salvage", heal_risk=1e-4).report
    first = asdict(report.healed_at[0])
    odd = [{**first, "bytes": 1 << 62}, {**first, "bytes": first["bytes"] - 1}, {**first, "phy_offset": first["phy_offset"] + 1}]
    odd += [{"phy_offset": 1 << 62, "bytes": 8}, {"phy_offset": 0, "bytes": 0}]
    told = {**written(report), "healed_at": [*odd, first]}
    (tmp_path / f"new{REPORT_SUFFIX}").write_text(document(told), "utf-8")
    notes = [f for f in product.audit(tmp_path / "new", "5.3.3", conf).findings if f.code == "message_healed"]
    assert [(f.phy_offset, (f.end or 0) - (f.start or 0)) for f in notes] == [(first["phy_offset"], first["bytes"])]


def test_a_lower_risk_leaves_the_body(store: tuple[Path, str, dict[str, bytes]], tmp_path: Path) -> None:
    root, conf, _ = store
    report = repaired(root, tmp_path / "new", plan_of(root, "5.3.3", conf), "salvage", heal_risk=1e-8).report
    assert [record.field for record in report.healed_records] == ["PHYSICALOFFSET"]
    assert report.healed is not None and "the risk" in report.healed.not_healed[0].reason


def test_without_the_option_nothing_is_healed(store: tuple[Path, str, dict[str, bytes]], tmp_path: Path) -> None:
    root, conf, _ = store
    report = previewed(root, tmp_path / "new", plan_of(root, "5.3.3", conf), "salvage").report
    assert report.healed is None and report.healed_at == ()

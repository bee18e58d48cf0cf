"""The command rescue as it is typed, on small stores."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import entry
from jobs.commands import rescue
from jobs.repair import first_look
from schemas.advice import Advice, Cause, Gap, Step
from schemas.layouts.store_names import BESIDE
from store_io.kinds.config.rebuild import config_changes
from store_io.kinds.config.texts.table_forms import Form
from store_io.kinds.timers import timer_rebuild
from store_io.repair import ways
from tests.support import damage
from tests.support.answers.repaired import content
from tests.support.handmade.outcome_fields import alter
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.small_repairs import SIZES, small_store
from tests.support.stores.timers import timer_store
from tests.support.texts.json_schemas import faults


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder with store/ and broker.conf; one record of the first segment is damaged."""
    path, body = written(tmp_path)
    damage.zero_range(path, body, body + 40)
    return tmp_path


def written(folder: Path) -> tuple[Path, int]:
    """A store and its broker.conf; (segment, position) of the body of a message that recovery reads."""
    root, conf = small_store(folder)
    (folder / "broker.conf").write_text(conf)
    path = root / "commitlog" / f"{3 * SIZES.segment:020d}"
    return path, path.read_bytes().index(bytes([57]) * 60)


def typed(store: Path, *words: str, release: str = "5.3.3") -> int:
    named = ["--release", release] if release else []
    return entry.main(["rescue", str(store / "store"), *named, "--broker-conf", str(store / "broker.conf"), *words])


def unsaved(path: Path) -> list[Any]:
    """The rows of the file, each as its schema says."""
    lines = path.read_text().splitlines()
    assert [fault for line in lines for fault in faults("unsaved", line)] == []
    return list(map(json.loads, lines))


def test_a_rescue_in_two_lines(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = content(store / "store")
    assert typed(store) == 20
    said = capsys.readouterr().out
    assert "Do not start this copy yet" in said and "policy salvage" in said and "--policy salvage" in said
    assert "Run the command after Repair, or this rescue command again with --yes." in said
    new = store / "store-rescued"
    assert not new.exists() and (store / "store-rescued.rescue" / "store" / "plan.json").exists()
    assert typed(store, "--yes") == 0
    said = capsys.readouterr().out
    assert "1 message could not be saved" in said and "could not be saved" in said and "[ ] Put" in said
    (row,) = unsaved(store / "store-rescued.unsaved.jsonl")
    assert (row["topic"], row["queue_id"], row["messages"], row["why"]) == ("TopicA", 0, 1, "missing")
    assert row["key_hashes"] and row["phy_offset"] is not None
    page = (store / "store-rescued.handover.html").read_text()
    assert "TopicA" in page and "could not be saved" in page
    assert content(store / "store") == before
    report = json.loads((store / "store-rescued.repair.json").read_text())
    assert report["steps_from"] == "plan" and report["consistent"]
    assert typed(store, "--yes") == 2 and "exists" in capsys.readouterr().err
    shutil.rmtree(new)
    assert typed(store) == 2 and "are left from another new store" in capsys.readouterr().err


def test_a_consistent_copy_needs_nothing(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(store, "--yes") == 0
    (store / "store").rename(store / "old")
    (store / "store-rescued").rename(store / "store")
    for path in store.glob("store-rescued.*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    capsys.readouterr()
    assert typed(store, "--yes") == 0
    assert "Nothing to repair: the copy is consistent" in capsys.readouterr().out
    assert sorted(path.name for path in store.iterdir()) == ["broker.conf", "old", "store"]


def test_what_must_be_named_is_said_before_any_work(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(store, release="") == 2
    assert "--release X is missing: " in capsys.readouterr().err
    assert entry.main(["rescue"]) == 2 and typed(store, "--to", str(store / "store" / "new")) == 2
    assert typed(store, "--donor", str(store / "store")) == 2
    assert "nothing to give" in capsys.readouterr().err
    assert not list(store.glob("store-rescued*"))


def test_without_a_broker_conf_what_is_assumed_comes_first_and_the_command_works_in_any_folder(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert entry.main(["rescue", str(store / "store"), "--release", "5.3.3"]) == 20
    said = capsys.readouterr().out
    assert said.startswith("  Assumed: No broker.conf was named: ") and "mappedFileSizeCommitLog = " in said
    command = next(line for line in said.splitlines() if line.startswith("  Repair")).split(maxsplit=1)[1]
    (store / "elsewhere").mkdir()
    monkeypatch.chdir(store / "elsewhere")
    program, *words = shlex.split(command)
    assert os.access(program, os.X_OK) and entry.main(words) == 0 and (store / "store-rescued").is_dir()
    page = html.unescape(re.sub(r"<[^>]+>", "", (store / "store-rescued.handover.html").read_text()))
    assert command in page and "No broker.conf was named: " in page and not list((store / "elsewhere").iterdir())


def test_settings_that_do_not_fit_are_no_ground_for_a_repair(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (store / "broker.conf").write_text("mappedFileSizeCommitLog=8192\n")
    assert typed(store, "--yes") == 2
    assert "Not rescued: Audit again with this store's own release and broker.conf" in capsys.readouterr().out
    assert not (store / "store-rescued").exists()


def test_a_release_that_is_not_known_is_judged_and_not_repaired(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(store, "--yes", release="5.3.33") == 3
    out = capsys.readouterr().out
    first, refused = out.index("RocketMQ 5.3.33 is not known"), out.index("Not rescued: Name a known release")
    assert first < refused and "spark-submit.sh repair" not in out
    assert not (store / "store-rescued").exists()


def test_what_cannot_be_audited_or_repaired_ends_with_3(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(store / "store" / "commitlog")
    assert typed(store, "--yes") == 3
    assert "Not rescued: Nothing to lose is left here" in capsys.readouterr().out
    shutil.rmtree(store / "store")
    assert typed(store) == 3
    assert "there is nothing of this name" in capsys.readouterr().err


def test_too_little_space_is_said_in_both_numbers(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "_free_bytes", lambda target: 1000)
    assert typed(store) == 3
    said = capsys.readouterr().err
    assert "the new store needs up to 67," in said and "1,000 (1 KB) are free there" in said
    assert not list(store.glob("store-rescued*"))


def test_a_donor_gives_what_is_damaged(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_store(tmp_path / "donor")
    assert typed(store, "--donor", str(tmp_path / "donor" / "store"), "--yes") == 0
    said = capsys.readouterr().out
    assert "all that the copy shows" in said and "1 range" in said
    assert not (store / "store-rescued.unsaved.jsonl").exists()
    plan = json.loads((store / "store-rescued.rescue" / "store" / "plan.json").read_text())
    assert plan["repair"]["salvage"]["options"] == ["--donor", str(tmp_path / "donor" / "store")]


def test_a_single_wrong_byte_is_healed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, body = written(tmp_path)
    damage.invert_byte(path, body + 20)
    assert typed(tmp_path, "--yes") == 0
    said = capsys.readouterr().out
    assert "--heal makes 1 damaged record whole (risk of a wrong change:" in said and "all that the copy shows" in said


def test_records_whose_risks_together_are_too_high_are_left_to_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone is below the bound of one: nobody asked a rescue for --heal."""
    path, body = written(tmp_path)
    damage.invert_byte(path, body + 20)
    monkeypatch.setattr(ways, "MOST_RISK", 1e-12)
    typed(tmp_path)
    said = capsys.readouterr().out
    assert "decide on repair --heal yourself" in said and " --heal " not in said.partition("  Repair ")[2].partition("\n")[0]


def test_messages_that_policy_broker_cuts_are_named_and_can_be_sent_again(store: Path) -> None:
    assert typed(store) == 20
    next((store / "store" / "commitlog").iterdir()).chmod(0o600)
    plan = str(store / "store-rescued.rescue" / "store" / "plan.json")
    words = ["repair", str(store / "store"), "--plan", plan, "--to", str(store / "new"), "--policy", "broker"]
    assert entry.main(words) == 0
    modes = {path.name: path.stat().st_mode & 0o777 for path in store.glob("new.*")}
    assert modes == {f"new{suffix}": 0o600 for suffix in BESIDE}
    report = json.loads((store / "new.repair.json").read_text())
    lines = [json.loads(line) for line in (store / "new.resend.jsonl").read_text().splitlines()]
    named = unsaved(store / "new.unsaved.jsonl")
    assert len(lines) == report["lost"]["messages"] == sum(row["why"] == "cut" for row in named)
    assert sum(row["messages"] for row in named) == report["given_up"]["messages"]
    assert all(line["body_base64"] for line in lines)


def test_offsets_beyond_the_new_ends_are_set_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(30):
        builder.put(Message("TopicA", 0, bytes([number]) * 60, uniq=f"{number:032X}"))
    groups = {"offsetTable": {"TopicA@g": {"0": 90}}}
    built = builder.write(tmp_path / "store", config={"consumerOffset.json": json.dumps(groups)})
    (tmp_path / "broker.conf").write_text(built.broker_conf)
    damage.zero_range(built.root / "commitlog" / f"{0:020d}", 1100, 1140)
    assert typed(tmp_path, "--yes") == 0
    assert "--fix-offsets" in capsys.readouterr().out
    text = (tmp_path / "store-rescued" / "config" / "consumerOffset.json").read_text()
    assert "0:30" in text


def test_a_person_at_the_terminal_is_asked(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [str(store / "broker.conf"), "5.3.3", "no"]

    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answers.pop(0) + "\n"

    monkeypatch.setattr("sys.stdin", Terminal())
    assert entry.main(["rescue", str(store / "store")]) == 20
    assert answers == [] and not (store / "store-rescued").exists()
    asked = capsys.readouterr().err
    assert "broker.conf" in asked and "The broker's RocketMQ release: " in asked and "Run it now?" in asked
    answers[:] = ["yes"]
    assert typed(store) == 0 and (store / "store-rescued").is_dir()
    answers[:] = [str(store / "broker.conf"), "seven"]
    assert entry.main(["rescue", str(store / "store"), "--to", str(store / "other")]) == 2
    assert "--release 'seven'" in capsys.readouterr().err


def test_a_kind_without_a_repair_is_refused_before_any_is_worked_out(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = rescue._audit

    def audit(*asked: Any) -> Any:
        outcome, compared = own(*asked)
        alter(outcome, no_repair=Advice(Step.NO_LEDGER_REPAIR))
        return outcome, compared

    monkeypatch.setattr(rescue, "_audit", audit)
    assert typed(store, "--yes") == 3
    said = capsys.readouterr().out
    assert "Not rescued: no repair is written for this kind of store." in said and "compare committedIndex" in " ".join(
        said.split()
    )
    assert not (store / "store-rescued").exists() and (store / "store-rescued.rescue" / "store" / "report.html").exists()


def test_a_copy_that_is_not_read_whole_is_not_repaired(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(store / "store" / "index")
    (store / "store" / "index").symlink_to("/proc/self")
    assert typed(store, "--yes") == 3
    assert "Not rescued: the copy could not be audited completely: " in capsys.readouterr().out


def sound(root: Path, *bodies: bytes) -> Path:
    """A sound store of one queue with these messages, and its broker.conf beside it."""
    builder = StoreBuilder("5.3.3", SIZES)
    for number, body in enumerate(bodies):
        builder.clock += 10
        builder.put(Message("TopicA", 0, body, uniq=f"U{number:03}{body[:1]!r}"))
    made = builder.write(root / "store")
    (root / "broker.conf").write_text(made.broker_conf)
    return made.root


def test_a_donor_of_a_sound_copy_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = [bytes(60)] * 10
    copy = sound(tmp_path / "copy", *same)
    donors = {"equal": same, "longer": [*same, *[bytes(60)] * 4], "shorter": same[:6]}
    for name, bodies in donors.items():
        sound(tmp_path / name, *bodies)

    def said(donor: str) -> tuple[int, str]:
        code = typed(copy.parent, "--donor", str(tmp_path / donor / "store"))
        return code, capsys.readouterr().out

    code, text = said("equal")
    assert code == 0 and "are equal up to physical offset" in text and "has more" not in text
    assert f"{copy}: Safe to start" in text
    code, text = said("longer")
    assert code == 0 and "the donor holds 4 messages of 1 queue that store lacks" in text and "from physical offset " in text
    assert "Nothing to repair: the copy is consistent by all checks. The donor has more" in text
    assert (
        f"{copy}: Start the donor, which holds 4 later messages, as master: this copy is an earlier moment of it" in text
        and "Safe to start" not in text
    )
    code, text = said("shorter")
    assert code == 0 and "store holds 4 messages of 1 queue that the donor lacks" in text and "has more" not in text
    (tmp_path / "equal" / "store" / "config").mkdir(exist_ok=True)
    (tmp_path / "equal" / "store" / "config" / "consumerOffset.json").write_text('{"offsetTable":{"TopicA@G":{0:7}}}')
    code, text = said("equal")
    assert code == 10 and "the donor has 1 consumer offset that store lacks" in text and "The donor has more" in text
    assert "Answer     other_copy" in text


def test_a_sound_copy_whose_donor_has_diverged_is_never_called_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = [bytes(60)] * 10
    copy = sound(tmp_path / "copy", *same, *[b"1" * 60] * 3)
    sound(tmp_path / "donor", *same, *[b"2" * 60] * 3)
    assert typed(copy.parent, "--donor", str(tmp_path / "donor" / "store"), "--yes") == 3
    said = capsys.readouterr().out
    assert "Nothing to repair" not in said and "differs from the donor" in said and "has other messages from there on" in said
    assert "Do not start this copy as master yet: it and the donor each hold" in said and "Safe to start" not in said
    assert not (tmp_path / "copy" / "store-rescued").exists()
    folder = tmp_path / "copy" / "store-rescued.rescue"
    page = html.unescape((folder / "store" / "report.html").read_text())
    compare = f"Compare this copy with {tmp_path / 'donor' / 'store'}, which holds 3 messages that this copy lacks, before either"
    assert compare in page and "loses nothing" not in page
    (group,) = json.loads((folder / "replicas.json").read_text())["groups"]
    assert [pair["relation"] for pair in group["pairs"]] == ["diverged"]


def test_a_donor_of_another_broker_is_named_once_and_left_out(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(40):
        builder.put(Message("Other", 0, b"y" * 100, uniq=f"{number:032X}"))
    builder.write(tmp_path / "wrong")
    assert typed(store, "--donor", str(tmp_path / "wrong"), "--yes") == 0
    said = capsys.readouterr().out
    assert said.count("no copy of this log") == 1 and "  Donor      unfit, and left out from here on: --donor " in said
    line = next(line for line in said.splitlines() if line.startswith("  Repair "))
    assert "--donor" not in line and (store / "store-rescued").exists()


@pytest.mark.parametrize("torn", [True, False], ids=["torn", "unreadable"])
def test_a_rescue_keeps_the_offsets_that_can_be_read_and_empties_no_table(
    torn: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path)
    config = tmp_path / "store" / "config"
    config.mkdir(exist_ok=True)
    text = '{"offsetTable":{"TopicA@g":{0:1},"TopicA@h":{0:1' if torn else "\0" * 40
    for name in ("consumerOffset.json", "consumerOffset.json.bak"):
        (config / name).write_text(text)
    code = typed(tmp_path, "--yes")
    said = capsys.readouterr()
    assert not any("--empty-config" in line for line in said.out.splitlines() if line.startswith("  Repair"))
    new = tmp_path / "store-rescued"
    if torn:
        assert code == 0 and '"TopicA@g":{0:1' in (new / "config" / "consumerOffset.json").read_text()
        assert "TopicA@h, 0 (cannot be read)" in said.out and "table entries not kept" in said.out
    else:
        assert code == 3 and not new.exists() and "with --empty-config it begins empty" in said.err


def test_a_form_of_a_table_that_cannot_be_read_leaves_the_way_without_it(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = store / "store" / "config"
    config.mkdir(exist_ok=True)
    (config / "consumerOffset.json").write_bytes(b"\0" * 2)
    path = "config/consumerOffset.json"
    sentence = "config/consumerOffsets/: not read this time"
    gap = Gap(Cause.UNREADABLE, "config/consumerOffsets", (sentence,))
    unread = [Form("config/consumerOffsets/", path, whole=False, unread=[sentence], failed={"config/consumerOffsets/": gap})]
    monkeypatch.setattr(config_changes, "database_forms", lambda copy, table: unread if table == path else [])
    assert typed(store, "--yes") == 0
    said = capsys.readouterr().out
    proposed = next(line for line in said.splitlines() if line.startswith("  Repair "))
    assert "--fix-config" not in proposed
    assert f"files of config/ stay as they are: with --fix-config the repair does not go: {sentence}" in " ".join(said.split())
    assert (store / "store-rescued" / path).read_bytes() == b"\0" * 2


@pytest.mark.parametrize(
    ("step", "left", "number", "code"),
    [("_audit", "nothing is left of it", signal.SIGTERM, 143), ("ways_text", "store-rescued.rescue", signal.SIGINT, 130)],
)
def test_an_interrupted_rescue_says_what_it_leaves(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], step: str, left: str, number: int, code: int
) -> None:
    real = getattr(rescue, step)

    def stopped(*words: Any) -> Any:
        os.kill(os.getpid(), number)
        return real(*words)

    monkeypatch.setattr(rescue, step, stopped)
    before = content(store / "store")
    assert typed(store, "--yes") == code
    said = capsys.readouterr().err
    assert "interrupted: " in said and left in said and "the copy is as it was" in said
    found = sorted(path.name for path in store.glob("store-rescued*"))
    assert found == (["store-rescued.rescue"] if step == "ways_text" else []) and content(store / "store") == before


def lacking(folder: Path, *gone: int) -> Path:
    """A store of four segments without these."""
    root, conf = small_store(folder)
    (folder / "broker.conf").write_text(conf)
    for number in gone:
        (root / "commitlog" / f"{number * SIZES.segment:020d}").unlink()
    return root


@pytest.mark.parametrize(("gone", "where"), [((1,), "between two others"), ((2, 3), "from the end of the log")])
def test_what_may_still_be_had_is_not_given_up(
    gone: tuple[int, ...], where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = lacking(tmp_path, *gone)
    new, name = tmp_path / "store-rescued", f"commitlog/{gone[0] * SIZES.segment:020d}"
    for words in ((), ("--yes",)):
        assert typed(tmp_path, *words) == 20 and not new.exists()
        said = capsys.readouterr().out
        assert f"{root}: Copy again: {name}" in said and where in said and "rsync -a rocketmq@BROKER:store/commitlog/" in said
        assert (
            said.index("Copy again") < said.index("it gives up ") < said.index("--yes --give-up") < said.index("policy salvage")
        )
        assert "  Repair " not in said and "Run the Repair line" not in said
    assert typed(tmp_path, "--give-up") == 20 and not new.exists()
    assert "  Repair " in capsys.readouterr().out
    assert typed(tmp_path, "--yes", "--give-up") == 0 and new.is_dir()


def test_a_donor_that_fills_the_gap_leaves_nothing_to_copy_again(tmp_path: Path) -> None:
    lacking(tmp_path, 1)
    small_store(tmp_path / "donor")
    assert typed(tmp_path, "--donor", str(tmp_path / "donor" / "store"), "--yes") == 0
    assert (tmp_path / "store-rescued").is_dir() and not (tmp_path / "store-rescued.unsaved.jsonl").exists()


def test_a_donor_that_holds_more_at_the_end_is_to_be_rescued_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lacking(tmp_path, 2, 3)
    small_store(tmp_path / "donor")
    donor = tmp_path / "donor" / "store"
    assert typed(tmp_path, "--donor", str(donor), "--yes") == 20 and not (tmp_path / "store-rescued").exists()
    said = capsys.readouterr().out
    assert f"Rescue {donor} instead: it holds everything that this copy has, and " in said
    assert f"rescue {donor} --release 5.3.3" in said and "  Repair " not in said
    assert typed(tmp_path, "--donor", str(donor), "--yes", "--give-up") == 0


def test_a_copy_without_config_of_a_broker_with_consumers_is_not_repaired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(30):
        builder.put(Message("%RETRY%G", 0, bytes([number]) * 60, uniq=f"{number:032X}"))
    built = builder.write(tmp_path / "store", topics_json=False)
    (tmp_path / "broker.conf").write_text(built.broker_conf)
    shutil.rmtree(built.root / "index", ignore_errors=True)
    assert typed(tmp_path, "--yes") == 20 and not (tmp_path / "store-rescued").exists()
    said = capsys.readouterr().out
    assert "Copy again: config/ is not in this copy" in said and f"store/config/ {built.root}/config/" in said
    assert typed(tmp_path, "--yes", "--give-up") == 0
    assert "%RETRY%G" in (tmp_path / "store-rescued" / "config" / "topics.json").read_text()
    assert "Put the broker's own config/consumerOffset.json into it" in capsys.readouterr().out


def test_timer_messages_for_which_a_start_is_late_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were due years ago, and a rescue means a start now."""
    made = timer_store(tmp_path / "store")
    (tmp_path / "broker.conf").write_text(made.conf)
    assert typed(tmp_path) == 20
    said = capsys.readouterr().out
    assert "--policy broker --late-timers" in said and "within seven days" in said
    assert "Start before" not in said and "Send again" not in said
    plan = json.loads((tmp_path / "store-rescued.rescue" / "store" / "plan.json").read_text())
    assert (plan["answer"], plan["first_day"]["timers"]["never"]) == ("repair", 4)
    assert typed(tmp_path, "--yes") == 0
    new = json.loads((tmp_path / "store-rescued.plan.json").read_text())
    assert {key: new["first_day"]["timers"][key] for key in ("never", "at_once", "later")} == {
        "never": 0,
        "at_once": 4,
        "later": 0,
    }
    report = json.loads((tmp_path / "store-rescued.repair.json").read_text())
    assert report["steps_from"] == "plan" and report["timers"]["rebuilt"] and report["timers"]["waiting"] == 4
    page = html.unescape((tmp_path / "store-rescued.handover.html").read_text())
    assert f"Start it before {new['first_day']['timers']['start_before'][:16].replace('T', ' ')} UTC:" in page


def test_the_disk_of_the_new_store_is_measured_and_said_first(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1 GB, 870 MB are used, the copy among it."""
    disk = SimpleNamespace(f_frsize=1000, f_blocks=1_000_000, f_bfree=130_000, f_bavail=130_000)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    (store / "store" / "left.bin").write_bytes(b"x" * 30_000_000)
    with open(store / "broker.conf", "a") as conf:
        conf.write("diskSpaceWarningLevelRatio=88\n")
    assert typed(store, "--yes") == 0
    new = json.loads((store / "store-rescued.plan.json").read_text())["first_day"]
    assert 87 < new["disk_used"] < 100 and len(new["retention"]["at_once"]) > 1
    limits = "above 85 % those of any age, all but the last; above 88 % it takes no message. "
    for said in (capsys.readouterr().out, html.unescape((store / "store-rescued.handover.html").read_text())):
        after = said[said.index("Which files go where") :]
        first = after[: after.index("Keep the damaged directory")]
        full = f"the disk of {store}/store-rescued is {new['disk_used']:g} % full. The damaged copy takes 3"
        assert full in first and limits in first and "Move the damaged copy to another disk before the start" in first
        start = after[after.index("Audit the new store once more") : after.index("Start RocketMQ 5.3.3")]
        assert f"it deletes by itself {len(new['retention']['at_once'])} segments within minutes" in start


def test_timers_that_no_repair_makes_are_a_condition_and_sent_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broker.conf").write_text(timer_store(tmp_path / "store").conf)
    monkeypatch.setattr(timer_rebuild, "_impossible", lambda view: "there is no room for a unit")
    assert typed(tmp_path) == 20
    said = capsys.readouterr().out
    assert "--late-timers" not in said and "Send again 4 timer messages" in said
    plan = json.loads((tmp_path / "store-rescued.rescue" / "store" / "plan.json").read_text())
    assert plan["answer"] == "change"

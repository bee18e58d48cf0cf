"""What a verdict promises is true: of every real store, and of one store after each kind of damage."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.cli.stores import StoreArgument
from jobs.report.files.result_files import result_json
from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.texts.commands import repair_commands, repair_withheld, store_words, words_of
from jobs.report.texts.finding_words import all_codes
from jobs.report.texts.next_steps import shown_steps
from jobs.report.texts.run_words import exit_words
from jobs.report.texts.summary_text import summary_text
from schemas.advice import Step
from schemas.answer import StepName
from schemas.outcome import Outcome
from schemas.rows import ASSUMED, DEFAULT, DOUBT, NAMED, NOTE
from store_io.answer.headline import judge, verdict_text
from store_io.audit.audit_store import run_local
from store_io.broker.releases import NEWEST_RELEASE
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.outcome.safety import Safety
from store_io.source.byte_source import StoreLocation
from store_io.wording.steps import next_text
from tests.support.answers.lost_messages import digest, kept_queues, losses, planned
from tests.support.answers.product import Audited, audit
from tests.support.answers.repaired import plan_of, repaired
from tests.support.handmade import samples
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.corpus_tools import Case, cases, of_kind

# Under their own release, and by default under one of two others without a broker.conf, in turn.
OTHER_RELEASES = "5.5.0", "4.8.0"
PROMISES = [
    pytest.param(case, other, marks=() if number % 2 == place else pytest.mark.soak, id=f"{case.name}-{other}")
    for number, case in enumerate(cases())
    for place, other in enumerate(OTHER_RELEASES)
] + [pytest.param(case, None, id=case.name) for case in of_kind("rocksdb")]


@pytest.mark.parametrize(("case", "other"), PROMISES)
def test_code_0_or_10_promises_a_start_that_loses_nothing(
    case: Case, other: str | None, audited: Callable[[Case], Audited]
) -> None:
    own = audited(case)
    others = [audit(own.root, other, None)] if other is not None and "storeType" not in case.broker_conf else []
    for done in (own, *others):
        outcome, release = done.outcome, done.audit.request.release
        broker = audit_plan(outcome)["broker"]
        if broker is not None and broker["starts"]:
            found = losses(done)
            assert (found["cut"] + found["unreachable"], found["undelivered"]) == planned(done)
            if release == case.release:
                holds_what_was_served(done, case)
        if outcome.exit_code in (0, 10):
            assert broker["starts"] and not broker["lost"]["messages"], (release, verdict_text(outcome))
        if broker is not None and not broker["starts"]:
            assert outcome.exit_code == 20 and judge(outcome).kind == Safety.REFUSES
            assert exit_words(20, [outcome]) == "no start"
        if judge(outcome).kind == Safety.SAFE:
            assert outcome.exit_code == 0


def holds_what_was_served(done: Audited, case: Case) -> None:
    """In every queue of which the broker served as many messages as a start keeps, it served these, byte for byte. There is such
    a queue with messages wherever the broker served any and a start keeps any."""
    served = case.expected.get("served", {}).get("queues", {})
    kept = kept_queues(done)
    compared = 0
    for name, queue in served.items():
        key = name.rpartition("-")[0], int(name.rpartition("-")[2])
        rows = kept.get(key, [])
        if len(rows) == queue["served"] and [row["queue_offset"] for row in rows] == list(range(queue["min"], queue["max"])):
            assert digest(key, rows) == queue["sha256"], name
            compared += bool(rows)
    assert (compared > 0) == (len(kept) > 0 and any(queue["served"] for queue in served.values()))


@pytest.mark.parametrize("name", ["g72", "g76", "g83"])
def test_a_store_that_does_not_start_is_not_called_damaged_for_that_alone(name: str, tmp_path: Path) -> None:
    (case,) = cases(name)
    judgement = judge(audit(case.unpack(tmp_path), case.release, case.broker_conf).outcome)
    assert judgement.kind == Safety.REFUSES and not any("damaged or missing" in sentence for sentence in judgement.why)


@pytest.mark.parametrize("name", ["g103", "g113"])
def test_the_advice_on_a_dledger_log_has_one_cause_and_no_donor(name: str, tmp_path: Path) -> None:
    (case,) = cases(name)
    outcome = audit(case.unpack(tmp_path), case.release, case.broker_conf).outcome
    steps = {f.code: next_text(f.next) for f in outcome.found.findings}
    assert "live_copy" not in steps and "queues_copied_later" not in steps
    assert not any("--donor" in step or "docs/" in step for step in steps.values())
    if name == "g113":
        assert (
            steps["ledger_crash_cut"] == steps["broker_skips_messages"] and "dledger-n0/checkpoint" in steps["ledger_crash_cut"]
        )
        assert "abort" in judge(outcome).headline and "rebuilt" not in judge(outcome).headline


def test_an_inferred_mode_is_part_of_the_answer(tmp_path: Path) -> None:
    (case,) = cases("g04")
    root = case.unpack(tmp_path)
    (root / "epochFileCheckpoint").write_text("1\n0\n1-0\n")
    for conf, inferred in ((None, True), (case.broker_conf, False)):
        outcome = audit(root, case.release, conf).outcome
        assert ("epochFileCheckpoint is there" in verdict_text(outcome)) == inferred
        assert ("runs in controller mode" in judge(outcome).headline) == inferred


# ---- what a verdict rests on -----------------------------------------------------------------------------------------


def assumed(case: Case, tmp_path: Path, **more: Any) -> Outcome:
    root = case.unpack(tmp_path)
    return run_local(AuditRequest("s", StoreLocation(str(root)), NEWEST_RELEASE, release_from=DEFAULT, **more))


def test_an_assumed_release_is_told_first_and_no_repair_is_shown(tmp_path: Path) -> None:
    (case,) = cases("g11-")
    outcome = assumed(case, tmp_path)
    release, settings = outcome.assumed.premises
    assert f"RocketMQ {NEWEST_RELEASE}, the newest known, is assumed. This copy was written by 5.1.0 to 5.3.4" in release.sentence
    assert "mappedFileSizeCommitLog = 131072" in settings.sentence and settings.kind == ASSUMED
    wrote = f"by its files RocketMQ 5.1.0 to 5.3.4 wrote it, and this answer is for {NEWEST_RELEASE}"
    assert judge(outcome).headline == f"Not known whether this copy is safe to start: {wrote}" and "is assumed" in verdict_text(
        outcome
    )
    assert audit_plan(outcome)["release_from"] == DEFAULT and any(s["action"] != "keep" for s in audit_plan(outcome)["steps"])
    words = store_words(StoreArgument("s", outcome.location_text, NEWEST_RELEASE, release_from=DEFAULT))
    summary = summary_text(samples.RUN, [outcome], "/out", words=words)
    lines = [line.split()[0] for line in summary.splitlines() if line[2:3].strip()]
    assert lines.index("Assumed") < lines.index("Why")
    page = "".join(report_html(outcome, PageContext(samples.RUN, words, "/out/s/plan.json")))
    assert page.index('id="premises"') < page.index('id="answer"')
    index = "".join(index_html(samples.RUN, [outcome, samples.clean()]))
    fleet = summary_text(samples.RUN, [outcome, samples.clean()], "/out")
    for text in (summary, page, index, fleet):
        assert "spark-submit.sh repair" not in text
    for text in (summary, page):
        step = "change: Name the broker's own release with --release and audit again: by its files RocketMQ 5.1.0 to 5.3.4"
        assert step in " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())
        assert f"--release {NEWEST_RELEASE}" not in text
    assert f"for 1 of 2 stores no release was named: {NEWEST_RELEASE} is assumed, and no repair command is shown" in fleet
    assert "For 1 of 2 stores no release was named" in index


def test_a_release_that_is_not_known_is_assumed_to_do_as_the_known_one_below(tmp_path: Path) -> None:
    (case,) = cases("g11-")
    root, known = case.unpack(tmp_path), "5.3.4"
    request = AuditRequest("s", StoreLocation(str(root)), known, case.broker_conf, release_from="5.3.9")
    outcome = run_local(request)
    (premise,) = outcome.assumed.premises
    assert premise.sentence.startswith("RocketMQ 5.3.9 is not known: the rules of 5.3.4, the newest known release below it")
    assert "RocketMQ 5.3.9 is not known: the rules of 5.3.4" in verdict_text(outcome)
    assert audit_plan(outcome)["release_from"] == "5.3.9"
    assert audit_plan(outcome)["broker"] == audit_plan(run_local(replace(request, release_from=NAMED)))["broker"]
    words = words_of(outcome)
    assert words[-1] == "5.3.9"
    summary = summary_text(samples.RUN, [outcome], "/out", words=words)
    lines = [line.split()[0] for line in summary.splitlines() if line[2:3].strip()]
    assert lines.index("Assumed") < lines.index("Why")
    page = "".join(report_html(outcome, PageContext(samples.RUN, words, "/out/s/plan.json")))
    for text in (summary, page):
        assert "spark-submit.sh repair" not in text and "Name a known release with --release" in text
    assert "for 1 of 2 stores no known release was named: 5.3.4 is assumed" in summary_text(
        samples.RUN, [outcome, samples.clean()], "/out"
    )


def test_without_a_broker_conf_nothing_is_safe_but_under_the_defaults(tmp_path: Path) -> None:
    """Of this store its own broker, which verifies property CRCs, cuts nearly all; by RocketMQ's defaults it loses nothing."""
    (case,) = cases("g67")
    root = case.unpack(tmp_path)
    own = audit(root, case.release, case.broker_conf).outcome
    assert own.exit_code == 20 and judge(own).kind == Safety.STOP and own.assumed.settings_from == NAMED
    outcome = run_local(AuditRequest("s", StoreLocation(str(root)), case.release))
    judgement = judge(outcome)
    assert outcome.exit_code == 0 and outcome.assumed.settings_from == DEFAULT
    assert judgement.headline.endswith(", if its broker.conf keeps RocketMQ's defaults, which is assumed")
    summary = " ".join(summary_text(samples.RUN, [outcome], "/out").split())
    assert "forceVerifyPropCRC" in summary and "name its broker.conf with --broker-conf and audit again" in summary
    assert "RocketMQ's defaults for all" in verdict_text(outcome)
    fleet = [outcome, samples.clean()]
    told = "or 1 of 2 stores no broker.conf was named: RocketMQ's defaults are assumed"
    for text in (summary_text(samples.RUN, fleet, "/out"), "".join(index_html(samples.RUN, fleet)).replace("&#39;", "'")):
        assert told in text
    assert "All stores are safe to start, once config/ is there, if what is assumed holds" in "".join(
        index_html(samples.RUN, fleet)
    )
    (one, two) = json.loads(result_json(samples.RUN, fleet))["stores"]
    assert (one["settings_from"], two["settings_from"]) == (DEFAULT, NAMED)


def test_a_named_release_with_its_broker_conf_rests_on_nothing(tmp_path: Path) -> None:
    (case,) = cases("g11-")
    outcome = audit(case.unpack(tmp_path), case.release, case.broker_conf).outcome
    assert outcome.assumed.premises == [] and audit_plan(outcome)["release_from"] == NAMED
    assert repair_commands(outcome, words_of(outcome), "/p") and not repair_withheld(outcome)


def test_a_release_older_than_the_one_that_wrote_the_copy_is_doubted(tmp_path: Path) -> None:
    (case,) = cases("g11-")
    outcome = audit(case.unpack(tmp_path), "4.9.8", case.broker_conf).outcome
    assert [p.kind for p in outcome.assumed.premises] == [DOUBT]
    assert "RocketMQ 4.9.8 was named, but a broker of 5.1.0 or newer wrote this copy" in verdict_text(outcome)
    assert judge(outcome).headline.endswith(", by what was named, which does not fit this copy")
    assert not repair_commands(outcome, words_of(outcome), "/p") and "no repair command" in repair_withheld(outcome)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("mappedFileSizeCommitLog=131072", "mappedFileSizeCommitLog=262144"),
            "broker.conf says mappedFileSizeCommitLog = 262144; all 6 segments of this copy are 131,072 bytes long: this"
            " broker.conf is probably not this store's",
        ),
        (
            ("mappedFileSizeCommitLog=131072", ""),
            "broker.conf leaves the default mappedFileSizeCommitLog = 1073741824; all 6 segments",
        ),
        (
            ("mappedFileSizeConsumeQueue=4000", "mappedFileSizeConsumeQueue=8000"),
            "broker.conf says mappedFileSizeConsumeQueue = 8000; all",
        ),
        (("maxIndexNum=1000", "maxIndexNum=2000"), "maxIndexNum = 2000, which makes files of"),
    ],
)
def test_a_broker_conf_that_does_not_fit_is_told_first(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    (case,) = cases("g04")
    assert change[0] in case.broker_conf
    outcome = audit(case.unpack(tmp_path), case.release, case.broker_conf.replace(*change)).outcome
    assert outcome.assumed.premises[0].kind == DOUBT and said in outcome.assumed.premises[0].sentence
    assert outcome.assumed.premises[0].sentence in verdict_text(outcome)
    shown = " ".join(summary_text(samples.RUN, [outcome], "/out").split())
    assert shown.count(said) == 1 and "by what was named, which does not fit this copy" in shown
    assert "by what was named, which does not fit" in summary_text(samples.RUN, [outcome, samples.clean()], "/out")
    (told,) = (f for f in outcome.found.findings if f.code == "setting_mismatch")
    assert (outcome.found.findings[0].severity != NOTE or told) and told.severity == NOTE
    steps = {f.next for f in outcome.found.findings if f.severity != NOTE and "size" in f.code or f.code == "broker_refuses"}
    assert steps <= {told.next} and told.next is not None and told.next.step == Step.OWN_CONF
    assert not repair_commands(outcome, words_of(outcome), "/p")


def test_a_broker_conf_is_not_doubted_for_one_cut_file_among_others(tmp_path: Path) -> None:
    (case,) = cases("g04")
    root = case.unpack(tmp_path)
    segments = sorted((root / "commitlog").iterdir())
    os.truncate(segments[1], 5000)
    assert audit(root, case.release, case.broker_conf).outcome.assumed.premises == []


@pytest.mark.parametrize("setting", ["duplicationEnable", "forceVerifyPropCRC"])
def test_where_a_later_setting_cuts_sound_messages_the_first_step_is_to_switch_it_off(setting: str, tmp_path: Path) -> None:
    (case,) = cases("g67")
    root = case.unpack(tmp_path)
    conf = case.broker_conf.replace("forceVerifyPropCRC=true", f"{setting}=true")
    outcome = audit(root, case.release, conf).outcome
    assert judge(outcome).headline.startswith(f"Do not start this copy with {setting}=true: a start cuts ")
    steps = shown_steps(outcome, words_of(outcome), "/p")
    assert [step.name for step in steps] == [StepName.COPY, StepName.CHANGE, StepName.START]  # config/ was not copied
    assert steps[1].text.startswith(f"First set {setting}=false in broker.conf")
    assert f"set {setting}=false" in all_codes()[audit_plan(outcome)["broker"]["stop_reason"]].what_to_do
    off = audit(root, case.release, conf.replace(f"{setting}=true", f"{setting}=false")).outcome
    assert off.exit_code == 0 and not off.assumed.unsafe_settings
    repaired(root, tmp_path / "new", plan_of(root, case.release, conf), "salvage")
    again = audit(tmp_path / "new", case.release, conf).outcome
    assert again.exit_code == 0 and any(
        step.name == StepName.CONDITION and step.text.startswith(f"Set {setting}=false")
        for step in shown_steps(again, words_of(again), "/p")
    )


@pytest.mark.parametrize("damage", ["a name", "zeros"])
def test_a_damaged_record_among_those_with_a_property_crc_blames_no_setting(damage: str, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.1", Sizes(segment=65536, queue_file=4000))
    records = [builder.put(Message("T", body=b"x" * 50, uniq=f"{n:032X}", property_crc=True)) for n in range(60)]
    store = builder.write(tmp_path / "s")
    path, end = store.segment_of(records[20]), store.position_of(records[20]) + records[20].size
    data = bytearray(path.read_bytes())
    if damage == "a name":
        data[end - 18] ^= 1  # of __CRC32#
    else:
        data[end - 40 : end] = bytes(40)
    path.write_bytes(data)
    conf = f"{store.broker_conf}\nforceVerifyPropCRC=true\nenabledAppendPropCRC=true\n"
    outcome = audit(store.root, "5.3.1", conf).outcome
    assert audit_plan(outcome)["broker"]["stop_reason"] == "property_crc_missing"
    assert judge(outcome).headline == "Do not start this copy yet: a start cuts 40 valid messages after physical offset 4,080"
    assert not any("forceVerifyPropCRC=false" in step.text for step in shown_steps(outcome, words_of(outcome), "/p"))

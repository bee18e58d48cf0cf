"""Commands to paste: they survive a shell, and the product takes them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.cli import options
from jobs.cli.message_filters import read_filter
from jobs.cli.stores import StoreArgument
from jobs.installation import ENTRY
from jobs.messages.message_query import read_query
from jobs.report.pages.hand_over_page import HandOverFiles, hand_over_text
from jobs.report.pages.sections_on_outcome import repair_view
from jobs.report.texts.commands import (
    closer_look,
    closer_withheld,
    command_line,
    not_shown,
    queue_query,
    repair_commands,
    repair_withheld,
    shell_word,
    store_words,
)
from jobs.report.texts.next_steps import shown_steps
from jobs.report.texts.text import printable
from schemas.answer import StepName
from schemas.first_day import FirstDay, StartMoment
from schemas.rows import Finding, PlanStep
from store_io.repair.proposals import config_helps
from tests.support.handmade import samples
from tests.support.handmade.handed import saved
from tests.support.handmade.outcome_fields import alter, varied
from tests.support.handmade.samples import HOSTILE_NAMES
from tests.support.texts.pages import WORDS

SHELLS = [shell for shell in (["dash"], ["bash"], ["busybox", "sh"]) if shutil.which(shell[0])]
HOSTILE_WORDS = [
    *HOSTILE_NAMES, "\n'; touch X; #", "'; touch X; '", "\\'; touch X; #", '"; touch X; "', "$(touch X)", "`touch X`",
    "a && touch X", ">X", "$'\\x41'", "~", "!!", "*", "a=b", "{a,b}", "a\\", "a,b", "a\\,b", "a  b --to /x", " ", "",
    "\u3164", "\xa0", "\x85", "\udcff",
]  # fmt: skip


def words_in(shell: list[str], command: str, folder: Path) -> list[str]:
    """The words that a shell makes of a command after its first one."""
    assert printable(command) == command  # nothing in it steers a terminal
    line = "printf '%s\\0' " + command.removeprefix(f"{ENTRY} ")
    done = subprocess.run([*shell, "-c", line], capture_output=True, check=True, cwd=folder)
    return done.stdout.decode("utf-8").split("\0")[:-1]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_words_survive_a_shell(shell: list[str], tmp_path: Path) -> None:
    shown = [word for word in HOSTILE_WORDS if shell_word(word)]
    assert shown == [word for word in HOSTILE_WORDS if word == printable(word)]
    assert words_in(shell, " ".join(map(shell_word, shown)), tmp_path) == shown and not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("word", HOSTILE_WORDS, ids=lambda word: f"{word[:20]!a}")
def test_no_printed_command_runs_anything_else(word: str, shell: list[str], tmp_path: Path) -> None:
    """Topics and folder names, in every command that is shown: the product gets them letter by letter, or a sentence says why
    there is none."""
    folder, outcome = f"/d/x{word}", samples.damaged()
    conf = tmp_path / "b'c $(touch X).conf"
    conf.write_text("maxIndexNum=5")
    entry = Finding("queue_entry_missing", f"consumequeue/{word}/3/0", topic=word, queue_id=3, queue_offset=70)
    for path, topic in ((folder, "t"), ("/d", word)):
        words = (path, "--release", "4.9.8", "--broker-conf", str(conf))
        handed = replace(saved(), words=words, target=path, files=HandOverFiles("/r", resend=f"{path}.jsonl"))
        lines = [text.strip() for text in hand_over_text(handed).splitlines()]
        commands = [closer_look(replace(entry, topic=topic), words), queue_query(words, topic, 3, 70, 71)[0]]
        commands += [command for _, command in repair_commands(outcome, words, f"{path}/plan.json")]
        commands += [line for line in lines if line.startswith(f"{ENTRY} ")]
        sent = [line for line in lines if line.startswith("java ")]
        if not shell_word(path):
            assert not any(commands) and len(commands) == 4 and not sent
            assert "--fleet" in not_shown(words) and sum("No command line can show the path" in line for line in lines) == 2
            continue
        withheld = "" if topic.strip() not in ("", "--") and shell_word(topic) else "--topic-file"
        assert withheld in closer_withheld(replace(entry, topic=topic), words) and bool(commands[0]) is not bool(withheld)
        for command in filter(None, commands):
            parsed = options.parse(words_in(shell, command, tmp_path))
            store = options.single_store(parsed) if parsed.audit is None else parsed.audit.stores[0]
            assert store.path == os.path.abspath(path)
            if parsed.name == "query":
                assert read_filter(parsed.options).topics == {topic}
        for line in sent:
            assert words_in(shell, line, tmp_path)[-1] == f"{path}.jsonl"
    assert list(tmp_path.iterdir()) == [conf]


@pytest.mark.parametrize("option", ["--broker-conf", "--plan"])
def test_a_file_whose_path_no_command_can_show_is_to_be_copied(option: str) -> None:
    words, path = ("/s", "--release", "4.9.8"), "/d/a\x1bb"
    conf = (*words, "--broker-conf", path if option == "--broker-conf" else "/b")
    plan = path if option == "--plan" else "/plan.json"
    outcome = samples.damaged()
    assert [command for _, command in repair_commands(outcome, conf, plan)] == ["", ""]
    said = repair_view(outcome, conf, plan, "new")["unshown"]
    assert said.startswith("No command line can show the path ") and "copy the file to a path without such letters" in said
    (step,) = (step for step in shown_steps(outcome, conf, plan) if step.name == StepName.REPAIR)
    assert step.text.endswith(said) and not step.command and "\x1b" not in said


def test_what_no_shell_can_be_given_is_looked_at_where_it_lies() -> None:
    entry = Finding("queue_entry_missing", "consumequeue/t/3/0", topic="a\n", queue_id=3, queue_offset=70, phy_offset=5)
    assert closer_look(entry, ("/s",)) == f"{ENTRY} explain /s --phy-offset 5" and not closer_withheld(entry, ("/s",))
    assert "--queue " not in closer_look(replace(entry, topic="t", queue_id=-1), ("/s",))


def test_the_command_that_looks_closer() -> None:
    damaged = Finding("commitlog_damaged", "commitlog/0", 5, 9, phy_offset=5)
    quoted = "'/copies/a b' --release 4.9.8 --broker-conf '/conf/b'\"'\"'c.conf'"
    assert closer_look(damaged, WORDS) == f"{ENTRY} explain {quoted} --phy-offset 5"
    entry = Finding(
        "queue_entry_missing", "consumequeue/t/3/0", 5, 9, phy_offset=5, topic="-t", queue_id=3, queue_offset=70, count=9
    )
    assert closer_look(entry, ("/s",)) == (f"{ENTRY} query /s --topic=-t --queue 3 --from-queue-offset 70 --to-queue-offset 79")
    assert closer_look(replace(entry, count=10**9), ("/s",)).endswith("--from-queue-offset 70 --to-queue-offset 170")
    assert "--topic 'a\\,b' --queue" in closer_look(replace(entry, topic="a,b"), ("/s",))  # one topic, not two
    assert closer_look(Finding("checkpoint_missing", "checkpoint"), WORDS) == ""
    assert command_line("explain", ("/a\0b",), []) == ""


def test_the_words_of_a_store_read_it_in_the_same_way() -> None:
    plain = StoreArgument("s", "/s", "5.3.3")
    assert store_words(plain) == ("/s", "--release", "5.3.3")
    parts = (("commitlog", ("/d1", "/d2")), ("index", ("/i",)))
    given = replace(plain, broker_conf="a=b", broker_conf_file="/c", parts=parts)
    assert store_words(replace(plain, broker_conf="a=b", broker_conf_file="/dev/fd/63"))[3:] == ("--broker-conf", "broker.conf")
    in_memory = replace(plain, broker_conf="a=b", broker_conf_file="/dev/shm/broker.conf")  # which stays
    assert store_words(in_memory)[3:] == ("--broker-conf", "/dev/shm/broker.conf")
    assert store_words(given)[3:] == ("--broker-conf", "/c", "--commitlog", "/d1,/d2", "--index", "/i")


def test_every_command_is_one_that_the_product_takes(tmp_path: Path) -> None:
    outcome = samples.damaged()
    alter(outcome, steps=[*outcome.plan.steps, PlanStep.whole("delete", "x", "r")])
    conf = tmp_path / "b'c.conf"
    conf.write_text("maxIndexNum=5")
    words = (str(tmp_path / "a b"), "--release", "4.9.8", "--broker-conf", str(conf), "--commitlog", "/d 1,/d2")
    finding = Finding("queue_entry_missing", "consumequeue/t/3/0", 5, 9, topic="-t", queue_id=3, queue_offset=70, count=9)
    commands = [closer_look(finding, words), closer_look(replace(finding, code="message_lost", phy_offset=5), words)]
    commands += [command for _, command in repair_commands(outcome, words, "/out/$x/plan.json")]
    parsed = []
    for command in commands:
        told = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True, text=True).stdout
        parsed.append(options.parse(told.split("\0")[1:-1]))
        store = options.single_store(parsed[-1])
        assert (store.path, store.release, store.broker_conf) == (words[0], "4.9.8", "maxIndexNum=5")
        assert store.parts == (("commitlog", ("/d 1", "/d2")),)
    assert [command.name for command in parsed] == ["query", "explain", "repair", "repair"]
    assert (parsed[0].options["--topic"], parsed[0].options["--to-queue-offset"]) == ("-t", "79")
    assert (parsed[2].options["--policy"], parsed[2].options["--plan"]) == ("salvage", "/out/$x/plan.json")
    assert parsed[3].options["--to"] == words[0] + "-repaired" and parsed[3].options["--policy"] == "broker"


def test_a_repair_is_offered_where_there_is_something_to_do() -> None:
    assert repair_commands(samples.clean(), WORDS, "/p") == []
    assert repair_commands(samples.not_audited(), WORDS, "/p") == []
    outcome = samples.refused()
    alter(outcome, steps=[PlanStep.whole("delete", "x", "r")])
    assert [what for what, _ in repair_commands(outcome, WORDS, "/p")] == [
        "Repair with --policy salvage: keeps 9 messages and removes what stops the release",
        "Repair with --policy broker: keeps 6 messages and removes what stops the release",
    ]
    for store in ("s3://b", "s3://b/", "hdfs://h:1/", "gs://b/s"):
        assert repair_commands(outcome, (store, "--release", "5.3.3"), "/p") == []
    for store in ("s3://b/s/", "hdfs://h:1/s"):
        commands = [command for _, command in repair_commands(outcome, (store, "--release", "5.3.3"), "s3://b/o/plan.json")]
        told = f"repair {store} --release 5.3.3 --plan s3://b/o/plan.json --to {store.rstrip('/')}-repaired --policy"
        assert [command.partition(" ")[2] for command in commands] == [f"{told} salvage", f"{told} broker"]
    assert repair_commands(replace(outcome, incomplete=["why"]), WORDS, "/p") == []  # repair refuses such a plan
    emptied = [Finding("commitlog_emptied", "commitlog", severity="loss")]
    assert repair_commands(varied(outcome, messages=0, findings=emptied), WORDS, "/p") == []
    assert repair_commands(varied(outcome, segment_count=0), WORDS, "/p") == []  # nothing to repair from


def test_a_repair_is_for_the_start_that_the_audit_was_for() -> None:
    outcome = samples.refused()
    alter(outcome, steps=[PlanStep.whole("delete", "x", "r")])
    named = StartMoment(1_795_879_455_000, "Asia/Tokyo", 87.5, decided=True, now_ms=5)
    told = ["--start-at", "2026-11-28T15:24:15Z", "--timezone", "Asia/Tokyo", "--disk-used", "87.5", "--plan"]
    for moment, words, between in (
        (named, WORDS, told),
        (replace(named, decided=False), WORDS, ["--plan"]),
        (replace(named, at_ms=5), WORDS, ["--plan"]),  # a rescue decides, and names no moment
        (named, (*WORDS, *told[:2]), [*told[:2], "--plan"]),
    ):
        (_, command), *_ = repair_commands(replace(outcome, first_day=FirstDay(moment)), words, "/p")
        assert shlex.split(command)[2 + len(WORDS) :][: len(between)] == between


def test_fix_config_helps_files_alone() -> None:
    outcome = samples.damaged()
    alter(outcome, findings=[*outcome.found.findings, Finding("config_table_lost", "config/topics.json", severity="loss")])
    assert config_helps(outcome) and not config_helps(varied(outcome, config_database="config/topics"))
    alter(
        outcome,
        findings=[*outcome.found.findings, Finding("config_table_lost", "config/delayOffset.json", severity="rebuildable")],
    )
    assert config_helps(varied(outcome, config_database="config/topics"))


def test_a_repair_is_offered_where_a_start_leaves_every_file_as_it_is() -> None:
    outcome = samples.clean()
    alter(outcome, steps=[PlanStep.whole("keep", "commitlog/0", "sound")])
    alter(outcome, exit_code=10, counts={"rebuildable": 1})
    alter(outcome, findings=[Finding("epoch_file_damaged", "epochFileCheckpoint", severity="rebuildable")])
    ((_, command),) = repair_commands(outcome, WORDS, "/p")  # of a large store: its plan has no steps of a repair
    assert command.startswith(f"{ENTRY} rescue ")
    alter(outcome, repairs=samples.proposed(steps=samples.worked_out("broker").steps[:1]))
    assert repair_commands(outcome, WORDS, "/p") == [] and repair_withheld(outcome) == "No repair changes what was found here."
    alter(outcome, repairs=(samples.worked_out("broker", options=("--fix-offsets",)), outcome.repairs[1]))
    assert repair_commands(outcome, WORDS, "/p")[0][1].endswith("--policy broker --fix-offsets")


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("word", HOSTILE_WORDS, ids=lambda word: f"{word[:20]!a}")
def test_what_one_copy_alone_holds_is_saved_by_a_command(word: str, shell: list[str], tmp_path: Path) -> None:
    """Both copies get a command in two steps, whose folders are named letter by letter, or a sentence says why there is none."""
    here, there, conf = f"/d/x{word}", f"/d/y{word}", tmp_path / "b.conf"
    conf.write_text("maxIndexNum=5")
    words = (here, "--release", "4.9.8", "--broker-conf", str(conf), "--commitlog", "/d1")
    outcome = samples.behind(samples.clean(), parted=True)
    copies = zip(outcome.replicas.copies, (there, here), strict=True)
    alter(outcome, replicas=replace(outcome.replicas, copies=tuple(replace(copy, location=place) for copy, place in copies)))
    for master, steps in (("master", {"other": there, "resend": here}), (outcome.name, {"other": there, "resend": there})):
        alter(outcome, replicas=replace(outcome.replicas, best=master))
        found = {step.name.value: step for step in shown_steps(outcome, words, "/plan.json") if step.name in steps}
        assert list(found) == ["other", "resend"]
        for name, sender in steps.items():
            if not shell_word(here):
                assert not found[name].command and "No command line can show the path" in found[name].text
                continue
            parsed = options.parse(words_in(shell, found[name].command, tmp_path))
            asked, store = read_query(parsed), options.single_store(parsed)
            kept = here if sender == there else there
            assert (store.path, asked.only_here, asked.form) == (os.path.abspath(sender), os.path.abspath(kept), "resend")
            assert asked.out == os.path.abspath(f"{sender.rstrip('/')}.only-here.jsonl")
            assert (store.release, store.broker_conf, store.parts) == ("4.9.8", "maxIndexNum=5", ())
    assert list(tmp_path.iterdir()) == [conf]


def test_a_step_to_send_again_counts_what_the_copy_alone_holds_that_is_no_master() -> None:
    outcome = samples.behind(samples.clean(), parted=True)
    name = outcome.name
    (step,) = (step for step in shown_steps(outcome, ("/s",), "/plan.json") if step.name == StepName.RESEND)
    assert step.text.startswith(f"Once master is master, send again what {name} alone holds, 20 messages: ")
    alter(outcome, replicas=replace(outcome.replicas, best=name))
    (step,) = (step for step in shown_steps(outcome, ("/s",), "/plan.json") if step.name == StepName.RESEND)
    assert step.text.startswith(f"Once {name} is master, send again what master alone holds, 300 messages: ")
    alter(outcome, replicas=replace(outcome.replicas, lacks=outcome.replicas.lacks[1:]))
    assert not [step for step in shown_steps(outcome, ("/s",), "/plan.json") if step.name == StepName.RESEND]

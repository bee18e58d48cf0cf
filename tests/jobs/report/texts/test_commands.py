"""Commands to paste: they survive a shell, and the product takes them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from jobs.command_line import options
from jobs.command_line.stores import StoreArgument
from jobs.report.texts.commands import closer_look, command_line, repair_commands, shell_word, store_words
from jobs.report.texts.text import printable
from schemas.rows import Finding
from tests.support.handmade import samples
from tests.support.handmade.samples import HOSTILE_NAMES
from tests.support.texts.pages import WORDS


def test_words_survive_a_shell() -> None:
    words = [word for word in HOSTILE_NAMES if "\0" not in word] + ["", " ", "a\nb", "\\", "\x7f\\x41", "\udcff"]
    line = "printf '%s\\0' " + " ".join(map(shell_word, words))
    assert printable(line.encode("utf-8", "strict").decode()) == line  # nothing in it steers a terminal
    told = subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout.split(b"\0")[:-1]
    expected = [b"\xff" if word == "\udcff" else word.encode("utf-8", "surrogatepass") for word in words]
    assert told == expected


def test_the_command_that_looks_closer() -> None:
    damaged = Finding("commitlog_damaged", "commitlog/0", 5, 9, phy_offset=5)
    quoted = "'/copies/a b' --release 4.9.8 --broker-conf '/conf/b'\"'\"'c.conf'"
    assert closer_look(damaged, WORDS) == f"./spark-submit.sh explain {quoted} --phy-offset 5"
    entry = Finding(
        "queue_entry_missing", "consumequeue/t/3/0", 5, 9, phy_offset=5, topic="-t", queue_id=3, queue_offset=70, count=9
    )
    assert closer_look(entry, ("/s",)) == (
        "./spark-submit.sh query /s --topic=-t --queue 3 --from-queue-offset 70 --to-queue-offset 79"
    )
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
    assert store_words(given)[3:] == ("--broker-conf", "/c", "--commitlog", "/d1,/d2", "--index", "/i")


def test_every_command_is_one_that_the_product_takes(tmp_path: Path) -> None:
    outcome = samples.damaged()
    outcome.plan["steps"].append({"action": "delete", "file": "x", "reason": "r"})
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
    outcome.plan["steps"] = [{"action": "delete", "file": "x"}]
    assert [what for what, _ in repair_commands(outcome, WORDS, "/p")] == [
        "Repair with --policy salvage: keeps 9 messages and removes what stops the release",
        "Repair with --policy broker: removes what stops the release, then keeps what the release keeps",
    ]
    for store in ("s3://b", "s3://b/", "hdfs://h:1/", "gs://b/s"):
        assert repair_commands(outcome, (store, "--release", "5.3.3"), "/p") == []
    for store in ("s3://b/s/", "hdfs://h:1/s"):
        commands = [command for _, command in repair_commands(outcome, (store, "--release", "5.3.3"), "s3://b/o/plan.json")]
        told = f"repair {store} --release 5.3.3 --plan s3://b/o/plan.json --to {store.rstrip('/')}-repaired --policy"
        assert [command.partition(" ")[2] for command in commands] == [f"{told} salvage", f"{told} broker"]
    assert repair_commands(replace(outcome, complete=False), WORDS, "/p") == []  # repair refuses such a plan
    emptied = [Finding("commitlog_emptied", "commitlog", severity="loss")]
    assert repair_commands(replace(outcome, messages=0, findings=emptied), WORDS, "/p") == []
    assert repair_commands(replace(outcome, segment_count=0), WORDS, "/p") == []  # nothing to repair from


def test_fix_config_is_offered_for_files_alone() -> None:
    outcome = samples.damaged()
    outcome.findings.append(Finding("config_table_lost", "config/topics.json", severity="loss"))
    assert all(command.endswith("--fix-config") for _, command in repair_commands(outcome, WORDS, "/p"))
    in_database = repair_commands(replace(outcome, config_database="config/topics"), WORDS, "/p")
    assert in_database and not any("--fix-config" in what + command for what, command in in_database)
    outcome.findings.append(Finding("config_table_lost", "config/delayOffset.json", severity="rebuildable"))
    beside = repair_commands(replace(outcome, config_database="config/topics"), WORDS, "/p")
    assert all(command.endswith("--fix-config") for _, command in beside)


def test_a_repair_is_offered_where_a_start_leaves_every_file_as_it_is() -> None:
    outcome = samples.clean()
    outcome.plan["steps"] = [{"action": "keep", "file": "commitlog/0"}]
    outcome.exit_code, outcome.counts = 10, {"rebuildable": 1}
    outcome.findings = [Finding("epoch_file_damaged", "epochFileCheckpoint", severity="rebuildable")]
    assert len(repair_commands(outcome, WORDS, "/p")) == 1  # of a large store: its plan has no steps of a repair
    outcome.plan["repair"] = {name: {"steps": [{"action": "copy"}]} for name in ("broker", "salvage")}
    assert repair_commands(outcome, WORDS, "/p") == []
    outcome.plan["repair"]["broker"]["steps"] += [{"action": "write_epochs"}]
    assert len(repair_commands(outcome, WORDS, "/p")) == 1

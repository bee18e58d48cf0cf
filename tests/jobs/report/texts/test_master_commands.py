"""The lines that make a master of a copy, typed into real shells."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from jobs.report.texts.commands import shell_word
from jobs.report.texts.master_commands import master_command
from jobs.report.texts.text import printable
from schemas.advice import Advice, Step
from schemas.replicas import Group, GroupCopy, TableAhead
from store_io.broker.settings.read_settings import read_given
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter

SLAVE = Advice(Step.MAKE_MASTER, ("brokerRole=SLAVE and brokerId=1",))
HOSTILE = ["$(touch x)`id`", "a'b\"c", "-rf", "; touch x", "%RETRY%g|y", "\x1b[31m", "a\nb", "\u202etxet", "\\", "*", "~"]


def typed(line: str, folder: Path) -> list[str]:
    """The words that mqadmin would get."""
    script = f"mqadmin() {{ printf '%s\\0' \"$@\"; }}\n{line}\n"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True, cwd=folder)
    return done.stdout.decode("utf-8").split("\0")[:-1]


@pytest.mark.parametrize("own", ["brokerRole=SLAVE\nbrokerId=1", "brokerRole : SLAVE\nbroker\\\nId 1\n", "brokerId=1\nx=y\\"])
@pytest.mark.parametrize("name", ["broker.conf", "b'c $(touch X).conf"])
def test_the_last_lines_of_broker_conf_make_a_master(own: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(own)
    line, why = master_command(samples.clean(), SLAVE, ("/s", "--release", "5.3.3", "--broker-conf", str(file)))
    typed(line, tmp_path)
    read = read_given(file.read_text(), "5.3.3")
    assert (read["brokerRole"], read["brokerId"], why) == ("ASYNC_MASTER", 0, "")
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_no_shell_can_be_given_has_no_line() -> None:
    line, why = master_command(samples.clean(), SLAVE, ("/s", "--broker-conf", "/a\x1bb"))
    assert not line and why.startswith("No command line can show the path") and "\x1b" not in why
    assert master_command(samples.clean(), SLAVE, ("/s",)) == ("", "")  # which file it is, is not known
    assert master_command(samples.clean(), SLAVE, ("/s", "--broker-conf", "/b.conf"))[0].endswith(">> /b.conf")


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_topics_and_groups_reach_mqadmin_letter_by_letter(name: str, tmp_path: Path) -> None:
    topic = Advice(Step.CREATE_TOPIC, (name, 3, 4, "the log of this copy", "+queue.type=BatchCQ"))
    group = Advice(Step.SET_GROUP, (name,))
    reads = Advice(Step.LET_GROUPS_READ, (name, "T", 0, 5, 0))
    for advice, noun, option in ((topic, "topic", "-t"), (group, "group", "-g"), (reads, "group", "-g")):
        line, why = master_command(samples.clean(), advice, ("/s",))
        if not shell_word(name):
            assert not line and why.startswith(f"No command line can show the {noun} ") and printable(why) == why
            continue
        words = typed(line, tmp_path)
        named = [f"--{noun}={name}"] if name.startswith("-") else [option, name]
        assert any(words[at : at + len(named)] == named for at in range(len(words))) and not why
    assert not list(tmp_path.iterdir())


def test_the_numbers_of_queues_are_those_of_the_table(tmp_path: Path) -> None:
    line, _ = master_command(samples.clean(), Advice(Step.CREATE_TOPIC, ("T", 3, 4, "config/topics.json of /b", "")), ("/s",))
    expected = "mqadmin updateTopic -n NAMESRV:9876 -b BROKER:10911 -t T -r 3 -w 4"
    assert line == expected and typed(line, tmp_path) == shlex.split(expected)[1:]


@pytest.mark.parametrize("name", ["b", "x $(touch X)'"])
def test_a_table_is_copied_over_the_one_that_a_start_reads(name: str, tmp_path: Path) -> None:
    outcome = samples.clean()
    here, there = tmp_path / "here", tmp_path / name
    for folder, text in ((here, "old"), (there, "new")):
        (folder / "config").mkdir(parents=True)
        (folder / "config" / "topics.json").write_text(text)
    ahead = TableAhead(outcome.name, "b", "topics", "config/topics.json")
    alter(outcome, replicas=Group(copies=(GroupCopy("b", str(there)),), config=(ahead,)))
    advice = Advice(Step.TAKE_TABLE, ("config/topics.json", str(there), 1, "topic"))
    line, why = master_command(outcome, advice, (str(here),))
    typed(line, tmp_path)
    assert (here / "config" / "topics.json").read_text() == "new" and not why
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["here", name])
    assert master_command(outcome, advice, ("s3://bucket/here",)) == ("", "")
    assert master_command(outcome, Advice(Step.NAME_CONF), (str(here),)) == ("", "")

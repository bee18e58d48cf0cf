"""What the product says of the stores whose answers were written by hand, read from outside on every surface."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import pytest

from jobs.report.files.ci_files import junit_xml, prometheus_text, summary_markdown
from jobs.report.files.result_files import plan_parts, result_json
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.texts.commands import words_of
from jobs.report.texts.next_steps import shown_steps
from jobs.report.texts.rescue_text import steps_list
from jobs.report.texts.summary_text import summary_text
from schemas.outcome import Outcome
from store_io.answer.answers import answer_of
from store_io.repair.repair_plan import read_plan
from tests.answers.outcomes import outcomes_of
from tests.answers.truth import STEPS, Copy, names, truth_of
from tests.support.handmade import samples

ANSWERED = [(name, copy.name) for name in names() for copy in truth_of(name).answered]
FIRST_LINES = 25
# Messages that the product says to be given up, if the truth has more: those that only the index shows are not counted.
BY_QUEUES = {"copy-while-running": 249, "segment-at-end": 162, "segment-between": 158}


def copy_of(name: str, copy: str) -> tuple[Copy, Outcome]:
    found = next(one for one in truth_of(name).answered if one.name == copy)
    return found, outcomes_of(name)[1][copy]


def words_of_text(text: str) -> str:
    return " ".join(text.split())


def each_name_once(found: Sequence[str]) -> list[str]:
    """Steps of one name that follow each other are one: a truth names each line and file, a step may name several."""
    return [name for name, _ in groupby(found)]


@pytest.mark.parametrize(("name", "copy"), ANSWERED)
def test_answer_code_and_steps_are_those_that_were_written_by_hand(name: str, copy: str) -> None:
    truth, outcome = copy_of(name, copy)
    steps = shown_steps(outcome, (outcome.location_text,), "plan.json")
    assert (answer_of(outcome), outcome.exit_code in truth.codes) == (truth.answer, True)
    assert each_name_once([step.name for step in steps]) == each_name_once([STEPS[step.step] for step in truth.steps])


@pytest.mark.parametrize(("name", "copy"), ANSWERED)
def test_what_the_repair_gives_up_is_what_was_written_by_hand(name: str, copy: str) -> None:
    truth, outcome = copy_of(name, copy)
    wanted = [BY_QUEUES.get(name, step.named["gives_up"]) for step in truth.steps if "gives_up" in step.named]
    steps = shown_steps(outcome, (outcome.location_text,), "plan.json")
    given = [step.gives_up.messages for step in steps if step.gives_up is not None]
    assert not wanted or given == wanted


@pytest.mark.parametrize(("name", "copy"), ANSWERED)
def test_every_surface_has_the_same_answer_steps_and_sentences(name: str, copy: str) -> None:
    _, outcome = copy_of(name, copy)
    run, words, plan_file = replace(samples.RUN, out="/out"), words_of(outcome), f"/out/{outcome.name}/plan.json"
    result = json.loads(result_json(run, [outcome]))
    row = result["stores"][0]
    answer, steps = row["answer"], [(step["step"], step["text"], step["command"]) for step in row["steps"]]
    assert answer == answer_of(outcome)
    listed = [words_of_text(f"{number}. {step}: {text}") for number, (step, text, _) in enumerate(steps, 1)]

    terminal = summary_text(run, [outcome], "/out", words=words)
    top = words_of_text("\n".join(terminal.splitlines()[: FIRST_LINES + 2 * len(steps)]))
    assert f"Answer {answer}" in top
    positions = [top.find(text.partition(": ")[0] + ":") for text in listed]
    assert -1 not in positions and positions == sorted(positions)

    page = "".join(report_html(outcome, PageContext(store_words=words, plan=plan_file)))
    bare = html.unescape(re.sub(r"<[^>]+>", "", page))
    for step, sentence, command in steps:
        assert words_of_text(f"{step}: {sentence}") in words_of_text(bare)
        assert command is None or command in bare

    rescued = words_of_text(steps_list(outcome, shown_steps(outcome, words, plan_file)))
    assert f"Answer {answer}" in rescued and all(line in rescued for line in listed)

    plan = json.loads("".join(plan_parts(outcome)))
    assert plan["answer"] == answer and [(one["step"], one["text"]) for one in plan["to_do"]] == [one[:2] for one in steps]
    assert answer in junit_xml(result) or not row["code"]
    assert answer in html.unescape(summary_markdown(result)) and answer in prometheus_text(result, 0.0)


def test_a_repair_and_its_hand_over_page_take_the_list_from_the_plan() -> None:
    _, outcome = copy_of("golden-body", "store")
    plan = read_plan("".join(plan_parts(outcome)).encode())
    assert plan.answer == "repair" and [name for name, _ in plan.to_do][:1] == ["copy"]

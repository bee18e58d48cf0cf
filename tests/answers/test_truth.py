"""The answers that were written down by hand: their form, and that their stores and numbers are what they were."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answers.recipes import RECIPES, make_answer_store
from tests.answers.truth import ANSWERS, ASKED, NAMED, STEPS, Copy, names, truth_of
from tests.support.second_witness import broker as witness
from tests.support.stores.builders import COMMIT, V1, V2, Record, decode

CODES = {
    "not_known": {3},
    "copy_again": {3, 10, 20},
    "other_copy": {10, 20},
    "change": {20},
    "repair": {10, 20},
    "start_mends": {10, 20},
    "empty": {0},
    "start": {0},
}
WITHOUT_NUMBER = {"nothing_lost", "no_message", "refuses", "identity_differs", "not_modelled"}


def test_every_store_has_an_answer_and_every_answer_a_store() -> None:
    assert set(names()) == set(RECIPES)
    assert len(names()) >= 30


def test_each_of_the_eight_answers_and_each_step_is_asked_for() -> None:
    copies = [copy for name in names() for copy in truth_of(name).answered]
    assert {copy.answer for copy in copies} == set(ANSWERS)
    assert {step.step for copy in copies for step in copy.steps} == set(STEPS)


@pytest.mark.parametrize("name", names())
def test_form(name: str) -> None:
    truth = truth_of(name)
    assert truth.about and truth.asked in ASKED
    assert 1 <= truth.why.count(". ") + truth.why.endswith(".") <= 3 and "  " not in truth.why
    assert len(truth.release.split(".")) == 3
    assert (len(truth.copies) > 1) == (truth.asked != "audit")
    assert len(truth.answered) == (len(truth.copies) if truth.asked == "group" else 1)
    for copy in truth.answered:
        _check(copy, {other.name for other in truth.copies} - {copy.name})


def _check(copy: Copy, others: set[str]) -> None:
    headline, steps = copy.headline, copy.steps
    assert copy.answer in ANSWERS and headline
    assert copy.codes and set(copy.codes) <= CODES[copy.answer]
    assert (headline.number > 0) == (headline.fact not in WITHOUT_NUMBER), headline
    order = [list(STEPS).index(step.step) for step in steps]
    assert order == sorted(order), f"{copy.name}: steps out of order"
    kinds = {step.step for step in steps}
    assert bool(steps) == (copy.answer != "not_known")
    assert {"copy_again", "other_copy", "change", "repair"} & {copy.answer} <= kinds, "what is answered is no step"
    assert "repair" not in kinds or copy.answer in ("repair", "copy_again")
    for step in steps:
        assert set(step.named) <= set(NAMED)
        assert all(step.named[key] > 0 for key in ("number",) if key in step.named)
        assert step.named.get("gives_up", 0) >= 0
        if step.step == "other_copy" and others:
            assert step.named["path"] in others
        if step.step == "change":
            assert {"setting", "value"} <= set(step.named)
            assert f"{step.named['setting']}={step.named['value']}" not in copy.broker_conf.split(), "it reads so already"
        if step.step in ("copy_again", "before_start"):
            assert {"path", "file"} & set(step.named)


@pytest.mark.parametrize("name", sorted(name for name in RECIPES if not name.startswith("golden-")))
def test_a_recipe_makes_the_same_bytes_each_time(name: str, tmp_path: Path) -> None:
    digests = []
    for turn in ("first", "second"):
        make_answer_store(name, tmp_path / turn)
        digests.append(_digest(tmp_path / turn))
    assert digests[0] == digests[1]
    made = {path.name for path in (tmp_path / "first").iterdir() if path.is_dir()}
    assert made == {copy.name for copy in truth_of(name).copies}


def _digest(folder: Path) -> str:
    told = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        told.update(f"{path.relative_to(folder)} {path.is_dir()}\n".encode())
        if path.is_file():
            told.update(hashlib.sha256(path.read_bytes()).digest())
    return told.hexdigest()


# ---- numbers, counted from the files once more ----------------------------------------------------------------------

SHOWN_MISSING = ("copy-while-running", "golden-zero-tail", "log-moved", "segment-at-end", "segment-between")
CUT = {"golden-body": "store", "pair-damaged": "master"}
NOT_IN_QUEUES = ("golden-batch-lmq", "sound-unclean")


@pytest.mark.parametrize("name", SHOWN_MISSING)
def test_messages_that_queues_and_index_show_and_the_log_lacks(name: str, tmp_path: Path) -> None:
    make_answer_store(name, tmp_path)
    copy = truth_of(name).copies[0]
    held = {record.at for record in _records(tmp_path / "store")}
    slots = int(dict(line.split("=", 1) for line in copy.broker_conf.split())["maxHashSlotNum"])
    shown = _in_queues(tmp_path / "store") | _in_index(tmp_path / "store", slots)
    assert copy.headline and len(shown - held) == copy.headline.number


@pytest.mark.parametrize("name", CUT)
def test_messages_that_a_start_cuts(name: str, tmp_path: Path) -> None:
    make_answer_store(name, tmp_path)
    truth, root = truth_of(name), tmp_path / CUT[name]
    copy = next(copy for copy in truth.copies if copy.name == CUT[name])
    plan, _ = witness.run(root, truth.release, copy.broker_conf)
    valid = [r for r in _records(root) if r.at > plan["truncate_at"] and r.phy_offset == r.at]
    assert copy.headline and len(valid) == copy.headline.number


@pytest.mark.parametrize("name", NOT_IN_QUEUES)
def test_messages_that_are_in_no_queue_yet(name: str, tmp_path: Path) -> None:
    make_answer_store(name, tmp_path)
    headline, queued = truth_of(name).copies[0].headline, _in_queues(tmp_path / "store")
    waiting = [r for r in _records(tmp_path / "store") if r.transaction in (0, COMMIT) and r.at not in queued]
    assert headline and len(waiting) == headline.number


def _records(root: Path) -> Iterator[Record]:
    """Read every record from its segment's start up to what is none."""
    for path in sorted((root / "commitlog").iterdir()):
        data, at = path.read_bytes(), 0
        while at + 8 <= len(data) and struct.unpack_from(">I", data, at + 4)[0] in (V1, V2):
            try:
                record = decode(data, at, int(path.name))
            except ValueError:
                break
            yield record
            at += record.size


def _in_queues(root: Path) -> set[int]:
    found = set()
    for kind, unit in (("consumequeue", 20), ("batchconsumequeue", 46)):
        for path in (root / kind).glob("*/*/*"):
            data = path.read_bytes()
            entries = (struct.unpack_from(">qi", data, at) for at in range(0, len(data) - unit + 1, unit))
            found |= {place for place, size in entries if 0 < size < 0x7FFFFFFF}
    return found


def _in_index(root: Path, slots: int) -> set[int]:
    found = set()
    for path in (root / "index").iterdir():
        data = path.read_bytes()
        (count,) = struct.unpack_from(">i", data, 36)
        found |= {struct.unpack_from(">q", data, 44 + 4 * slots + 20 * number)[0] for number in range(1, count)}
    return found

"""A link or a device in place of a file: nobody knows what lies there, so its length means nothing and it is never given up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.report.texts.summary_text import summary_text
from tests.support.answers.product import Audited, audit
from tests.support.handmade import samples
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder
from tests.support.stores.dledger_stores import build as build_ledger

LENGTHS = {"segment_empty", "segment_wrong_size", "segment_missing", "queue_file_empty", "queue_file_wrong_size",
           "index_file_wrong_size", "ledger_index_wrong_size", "file_unrecognised"}  # fmt: skip


def build(root: Path) -> Store:
    builder = StoreBuilder("5.3.3", Sizes(segment=2048, queue_file=160, index_max=8))
    for n in range(24):
        builder.put(Message("T", 0, b"b" * 200, keys=f"k{n}"))
    return builder.write(root, clean=True)


def replaced(path: Path, kind: str) -> None:
    elsewhere = next(folder for folder in path.parents if folder.name == "store").parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    path.rename(elsewhere / path.name)
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(elsewhere / path.name if kind == "link" else "/dev/zero")


def not_given_up(found: Audited, path: str) -> None:
    assert found.broker is None and any(sentence.startswith(f"{path}: ") for sentence in found.incomplete)
    assert [f.code for f in found.findings if f.file == path] == ["file_not_regular"]
    assert not LENGTHS & {f.code for f in found.findings}
    assert "delete" not in {step.action for step in found.outcome.plan.steps}
    assert f"Put the file itself in place of this link or device, then audit again ({path})." in " ".join(
        summary_text(samples.RUN, [found.outcome], "/out").split()
    )


@pytest.mark.parametrize(("number", "kind"), [(0, "fifo"), (1, "device"), (-1, "link")])
def test_in_place_of_a_segment(number: int, kind: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = build(root)
    path = sorted((root / "commitlog").iterdir())[number]
    replaced(path, kind)
    for release in ("4.9.2", "5.3.3"):
        found = audit(root, release, store.broker_conf)
        not_given_up(found, f"commitlog/{path.name}")
        assert {step.action for step in found.outcome.plan.steps if step.file.startswith("commitlog/")} == {"keep"}


@pytest.mark.parametrize("part", ["consumequeue/T/0", "index"])
@pytest.mark.parametrize("number", [0, -1])
def test_in_place_of_a_queue_or_index_file(part: str, number: int, tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = build(root)
    files = sorted((root / part).iterdir())
    assert len(files) > 2
    replaced(files[number], "link")
    found = audit(root, "5.3.3", store.broker_conf)
    not_given_up(found, f"{part}/{files[number].name}")
    assert found.above_note == []


@pytest.mark.parametrize("part", ["data", "index"])
def test_in_place_of_a_file_of_dledger(part: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = build_ledger(root)
    path = min((root / "dledger-n0" / part).iterdir())
    replaced(path, "link")
    not_given_up(audit(root, store.release, store.broker_conf), f"dledger-n0/{part}/{path.name}")

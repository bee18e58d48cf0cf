"""What is found out before any large file is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store_io.audit.open_copy import open_copy
from store_io.kinds.checkpoint.checkpoint_kind import CHECKPOINT
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.index.index_kind import INDEX
from store_io.model.audit_request import AuditRequest
from store_io.model.found_gaps import Gaps
from store_io.source.byte_source import StoreLocation
from tests.support.answers import product
from tests.support.stores.builders import Message, Sizes, StoreBuilder


def make(root: Path, files: dict[str, bytes]) -> AuditRequest:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return AuditRequest("s", StoreLocation(str(root)), "5.3.3")


def test_a_store_by_its_names_and_small_files(tmp_path: Path) -> None:
    files = {"commitlog/00000000000000000064": bytes(64), "commitlog/00000000000000000000": bytes(64), "abort": b"1"}
    files |= {"consumequeue/T/3/00000000000000000000": bytes(40), "index/7": bytes(100), "index/no number": b""}
    files |= {"config/topics.json": b'{"topicConfigTable":{"T":{"topicName":"T"}}}'}
    gaps = Gaps()
    copy = open_copy(make(tmp_path, files), gaps)
    assert [f.start for f in copy.segment_files] == [0, 64] and copy.unclean and not copy.no_store
    served = copy.queues_in_files.served
    assert served.folders == {("T", 3): "consumequeue/T/3"} and len(served.files["T", 3]) == 1
    assert [f.path for f in copy[INDEX]] == ["index/7"] and copy.headers["index/7"].index_count == 0
    assert (
        copy[CONFIG].tables.topics is not None and set(copy[CONFIG].tables.topics) == {"T"} and copy.checkpoint.physic_time == 0
    )
    assert copy.entry_range("abort") == (0, 1) and copy.entry_range("checkpoint") == (None, None)
    assert gaps == Gaps()


@pytest.mark.parametrize(("config", "found"), [(None, {"B"}), (b'{"topicConfigTable":{}}', set()), (b"no json", set())])
def test_batch_topics_by_config_or_without_one_by_folder(tmp_path: Path, config: bytes | None, found: set[str]) -> None:
    files = {"commitlog/00000000000000000000": bytes(64), "batchconsumequeue/B/0/00000000000000000000": bytes(46)}
    request = make(tmp_path, files | ({"config/topics.json": config} if config is not None else {}))
    assert open_copy(request, Gaps()).batch_topics == found


def test_what_cannot_be_opened_is_told_and_ends_the_prediction(tmp_path: Path) -> None:
    request = make(tmp_path, {"commitlog/00000000000000000000": bytes(64)})
    os.mkfifo(tmp_path / "checkpoint")
    gaps = Gaps()
    copy = open_copy(request, gaps)
    assert gaps.broken and "checkpoint" in [gap.path for gap in gaps.found]
    assert not copy[CHECKPOINT].present


def test_a_segment_beyond_63_bits_is_not_modelled_and_no_segment(tmp_path: Path) -> None:
    gaps = Gaps()
    copy = open_copy(make(tmp_path, {"commitlog/9223372036854775807": bytes(64)}), gaps)
    assert copy.segment_files == [] and len(copy.unmodelled) == 1 and gaps.found == list(copy.unmodelled)


@pytest.mark.parametrize(("release", "starts"), [("5.1.1", True), ("5.1.2", False), ("5.1.3", True)])
def test_5_1_2_never_starts_in_controller_mode(release: str, starts: bool, tmp_path: Path) -> None:
    builder = StoreBuilder(release, Sizes(segment=1024))
    builder.put(Message(body=b"body", uniq="u"))
    store = builder.write(tmp_path / "store")
    found = product.audit(store.root, release, store.broker_conf + "enableControllerMode=true\n").broker
    assert found is not None and found["starts"] is starts
    assert starts or found["refusal"].startswith("enableControllerMode=true: a broker of 5.1.2 ends")
    plain = product.audit(store.root, release, store.broker_conf).broker
    assert plain is not None and plain["starts"]

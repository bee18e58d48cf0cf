"""duplicationEnable=true: what start() dispatches, and what it waits for. Releases: tests/broker_truth/test_random_damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import damage
from tests.support.answers import product
from tests.support.damage import remove
from tests.support.stores import dledger_stores
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

DUPLICATION = "duplicationEnable=true\n"
RECHECK = "recheckReputOffsetFromCq=true\n"


def store(root: Path, release: str, *, messages: int = 20, undispatched: int = 0) -> Store:
    builder = StoreBuilder(release, Sizes(segment=2048))
    for number in range(messages):
        builder.clock += 1000  # so that recovery may begin at the newest segment
        builder.put(Message("Topic", 0, b"x" * 30, uniq=f"{number:08X}", properties=(("DUP_INFO", "1_2"),)))
    return builder.write(root, undispatched=undispatched)


def ends(store: Store, release: str, more: str) -> tuple[int, int]:
    """(where start() waits without end, or -1; the queue's maximum then)."""
    audit = product.audit(store.root, release, store.broker_conf + more)
    assert audit.broker is not None and audit.broker["starts"] and audit.audit.prediction is not None
    (queue,) = [queue for queue in audit.broker["after_dispatch"]["queues"] if queue["topic"] == "Topic"]
    hangs_at = audit.audit.prediction.hangs_at
    assert ("broker_hangs" in {finding.code for finding in audit.findings}) == (hangs_at >= 0)
    return hangs_at, queue["max_offset"]


@pytest.mark.parametrize("release", ["4.8.0", "4.9.8"])
def test_up_to_4_9_8_start_waits_for_what_is_never_dispatched(release: str, tmp_path: Path) -> None:
    """confirmOffset is -1 in a new process."""
    whole = store(tmp_path / "whole", release)
    assert ends(whole, release, DUPLICATION) == (-1, 20)
    lagging = store(tmp_path / "lagging", release, undispatched=3)
    assert ends(lagging, release, DUPLICATION) == (lagging.records[17].at, 17)
    assert ends(lagging, release, "") == (-1, 20)


@pytest.mark.parametrize("release", ["5.0.0", "5.1.4"])
def test_later_ones_dispatch_what_is_confirmed_where_they_look_at_the_queues(release: str, tmp_path: Path) -> None:
    """Recovery leaves confirmOffset at the start of the last message."""
    lost = store(tmp_path / "lost", release)
    remove(lost.root / "consumequeue")
    assert ends(lost, release, DUPLICATION + RECHECK) == (-1, 19)


def test_confirm_offset_is_where_the_last_message_lies_whatever_it_stores(tmp_path: Path) -> None:
    """A segment under another's name: its records store other physical offsets."""
    made = store(tmp_path / "s", "5.1.4")
    first, *later = sorted((made.root / "commitlog").iterdir())
    for path in later:
        remove(path)
    data = first.read_bytes()
    (first.parent / f"{2048:020d}").write_bytes(data)
    last = max(record.at for record in made.records if record.at + record.size <= 2048)
    first.write_bytes(data[:last].ljust(2048, b"\0"))  # load() would throw over what is here
    (made.root / "abort").touch()
    audit = product.audit(made.root, "5.1.4", made.broker_conf + DUPLICATION)
    assert audit.broker is not None and audit.broker["starts"], audit.broker


def test_confirm_offset_0_is_where_the_first_segment_begins(tmp_path: Path) -> None:
    """After a clean exit whose scan reads no message the stored value stays, here 0; retention took the segments before."""
    made = store(tmp_path / "s", "5.3.3", messages=30)
    first, *later = sorted((made.root / "commitlog").iterdir())
    remove(first)
    for path in later:
        path.write_bytes(bytes(2048))
    assert product.audit(made.root, "5.3.3", made.broker_conf).broker["starts"]  # type: ignore[index]
    broker = product.audit(made.root, "5.3.3", made.broker_conf + DUPLICATION).broker
    assert broker is not None and not broker["starts"] and "its size is 0" in broker["refusal"]


@pytest.mark.parametrize("release", ["4.8.0", "4.9.8"])
def test_with_dledger_start_waits_for_nothing(release: str, tmp_path: Path) -> None:
    """There confirmOffset is the end of what is committed (DLedgerCommitLog.getConfirmOffset)."""
    made = dledger_stores.build(tmp_path, release, undispatched=5)
    plain, doubled = (product.audit(made.root, release, made.broker_conf + more) for more in ("", DUPLICATION))
    for audit in (plain, doubled):
        assert audit.broker is not None and audit.audit.prediction is not None and audit.audit.prediction.hangs_at == -1
        ends = {
            q["topic"]: q["max_offset"] for q in audit.broker["after_dispatch"]["queues"] if q["topic"] != "SCHEDULE_TOPIC_XXXX"
        }
        assert ends == {"Topic0": 20, "Topic1": 20}


def test_uncommitted_messages_are_dispatched_too(tmp_path: Path) -> None:
    """From the last message on, which recovery takes for confirmed, to the log's end; with a look at the queues all."""
    lost = store(tmp_path / "lost", "5.3.1")
    remove(lost.root / "consumequeue")
    assert ends(lost, "5.3.1", DUPLICATION + "readUnCommitted=true\n" + RECHECK) == (-1, 20)
    (lost.root / "commitlog").rename(tmp_path / "log")
    damage.set_checkpoint(lost, confirm=5)
    audit = product.audit(lost.root, "5.3.1", lost.broker_conf + DUPLICATION + RECHECK)
    assert audit.audit.prediction is not None and audit.audit.prediction.hangs_at == 0  # for what is confirmed and gone

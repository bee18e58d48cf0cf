"""What `explain` says would make a damaged record whole, and what of it is shown."""

from __future__ import annotations

from pathlib import Path

from jobs.report.texts.explain_text import explain_json, explain_text
from store_io.messages.explain.explain_place import SHOW_ALL, Explanation, explain
from store_io.messages.redaction import HIDE, Redaction
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.answers.healing import healings
from tests.support.damage import invert_byte
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.small_repairs import SIZES


def explained(folder: Path, position: int, phy_offset: int, redaction: Redaction = SHOW_ALL) -> Explanation:
    """A store of ten messages of which one byte is changed."""
    return explain(damaged(folder, position), phy_offset, redaction)


def damaged(folder: Path, position: int, count: int = 10) -> AuditRequest:
    """The same store."""
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(count):
        builder.put(Message("TopicA", 0, bytes([65 + number]) * 60, uniq=f"{number:032X}", born_time=1_700_000_000_000))
    store = builder.write(folder / "store")
    invert_byte(store.root / "commitlog" / f"{0:020d}", position, 2)
    return AuditRequest("s", StoreLocation(str(store.root)), "5.3.3", store.broker_conf)


def test_the_change_is_said_in_text_and_json(tmp_path: Path) -> None:
    size = explained(tmp_path / "size", 100, 0).record_size
    said = explained(tmp_path / "body", 2 * size + 90, 2 * size + 5)
    (healing,) = said.healing
    assert healing.heals and healing.change is not None and healing.change.field == "BODY"
    text = " ".join(explain_text(said, 120).split())
    assert f"43 in the place of 41 at position {2 * size + 90} (BODY) makes the record at {2 * size} whole" in text
    assert '"new": "43"' in explain_json(said)


def test_bytes_of_a_body_are_concealed_and_those_of_a_header_are_not(tmp_path: Path) -> None:
    hide = Redaction(HIDE, b"")
    size = explained(tmp_path / "size", 100, 0).record_size
    body = explained(tmp_path / "body", size + 90, size, hide).healing[0]
    assert body.heals and body.change is not None and body.change.new == b""
    field = explained(tmp_path / "field", size + 6, size, hide).healing[0]
    assert field.change is not None and field.change.new == b"\x20"


def test_a_sound_place_has_nothing_to_heal(tmp_path: Path) -> None:
    said = explained(tmp_path, 100, 0)
    other = said.record_size * 4
    assert explained(tmp_path / "other", 100, other).healing == []


def test_a_queue_offset_is_explained_by_the_segments_beside_it_as_a_repair_heals_it(tmp_path: Path) -> None:
    """The message is valid; that its queue leaves another queue offset for it, the segment after it shows."""
    size = explained(tmp_path / "size", 100, 0).record_size
    last = (SIZES.segment - 8) // size - 1
    request = damaged(tmp_path / "offset", last * size + 27, 2 * last)
    assert explain(request, 0).healing == []
    (healing,) = explain(request, last * size).healing
    (repaired,) = healings(Path(request.location.root), request.release, request.broker_conf)
    assert healing == repaired and healing.heals and healing.change is not None
    assert (healing.change.field, healing.queue_offset) == ("QUEUEOFFSET", last)
    assert healing.risk == 1 / 2 ** (16 + 32)  # by its neighbours, which gave the value, and its entry

"""explain: every field where an independent encoder put it, what is wrong named where it is, and no byte of a store unescaped."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from store_io.broker.releases import NEWEST_RELEASE
from tests.support.damage import invert_byte
from tests.support.stores import corpus_tools
from tests.support.stores.builders import (
    COMPRESSED,
    ROLLBACK,
    SCHEDULE_TOPIC,
    Message,
    Record,
    Sizes,
    Store,
    StoreBuilder,
    compress,
    encode,
    field_position,
    index_hash,
    inner_body,
    java_hash,
)

V6_HOST = bytes.fromhex("20010db8000000000000000000000001") + (10911).to_bytes(4, "big")
NAMES = {
    "size": "TOTALSIZE",
    "magic": "MAGICCODE",
    "bodyCRC": "BODYCRC",
    "queueId": "QUEUEID",
    "flag": "FLAG",
    "queueOffset": "QUEUEOFFSET",
    "physOffset": "PHYSICALOFFSET",
    "sysFlag": "SYSFLAG",
    "bornTimestamp": "BORNTIMESTAMP",
    "bornHost": "BORNHOST",
    "storeTimestamp": "STORETIMESTAMP",
    "storeHost": "STOREHOST",
    "reconsumeTimes": "RECONSUMETIMES",
    "preparedOffset": "PREPAREDTRANSACTIONOFFSET",
    "bodyLength": "BODYLENGTH",
    "body": "BODY",
    "topicLength": "TOPICLENGTH",
    "topic": "TOPIC",
    "propsLength": "PROPERTIESLENGTH",
}
LONG = "a sentence, again and again; " * 40
MESSAGES = {
    "plain": Message(body=b"a plain body", tags="TagA", keys="k1 k2", uniq="7F0000010A4C18B4AAC2A2A9985304E9"),
    "v2": Message(topic="T" * 200, body=b"of a long topic", tags="x"),
    "ipv6": Message(body=b"over IPv6", born_host=V6_HOST, store_host=V6_HOST, keys="six"),
    "born6": Message(body=b"one host of each kind", born_host=V6_HOST),
    "crc": Message(body=b"with a property CRC", property_crc=True, tags="t"),
    "lz4": Message(body=compress(LONG.encode(), "lz4"), sys_flag=COMPRESSED["lz4"]),
    "zstd": Message(body=compress(LONG.encode(), "zstd"), sys_flag=COMPRESSED["zstd"]),
    "zlib": Message(body=compress(LONG.encode(), "zlib"), sys_flag=COMPRESSED["zlib"]),
    "empty": Message(),
    "inner": Message(topic="Batches", body=inner_body([b"one", b"two"]), inner_count=2),
    "lmq": Message(body=b"to two queues", lmq=("%LMQ%a",)),
    "delayed": Message(topic=SCHEDULE_TOPIC, queue_id=2, body=b"later", properties=(("DELAY", "3"), ("REAL_TOPIC", "TopicA"))),
    "rollback": Message(body=b"taken back", sys_flag=ROLLBACK),
}


def said(capsys: pytest.CaptureFixture[str], store: Store | Path, phy_offset: int, *words: str) -> dict[str, Any]:
    """explain's JSON object. A builder's store is read under its own settings."""
    assert entry.main([*asked(store, phy_offset), "--format", "json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def text(capsys: pytest.CaptureFixture[str], store: Store | Path, phy_offset: int, *words: str) -> str:
    assert entry.main([*asked(store, phy_offset), *words]) == 0
    return capsys.readouterr().out


def asked(store: Store | Path, phy_offset: int) -> list[str]:
    if isinstance(store, Path):
        return ["explain", str(store), "--phy-offset", str(phy_offset)]
    conf = store.root.parent / f"{store.root.name}.conf"
    conf.write_text(store.broker_conf, encoding="utf-8")
    words = ["explain", str(store.root), "--phy-offset", str(phy_offset)]
    return [*words, "--release", store.release, "--broker-conf", str(conf)]


def flip(store: Store, record: Record, name: str, bit: int = 1) -> None:
    """Invert a bit in the last byte of one field."""
    at, size = field_position(record, name)
    path = store.segment_of(record)
    invert_byte(path, store.position_of(record) + at + size - 1, bit)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    builder = StoreBuilder("5.3.3", Sizes(segment=8192), batch_topics=["Batches"], lmq=True)
    for message in MESSAGES.values():
        builder.put(message)
    return builder.write(tmp_path_factory.mktemp("explain") / "store")


@pytest.mark.parametrize("name", MESSAGES)
def test_every_field_of_every_kind_of_record(store: Store, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = store.records[list(MESSAGES).index(name)]
    found = said(capsys, store, record.at)
    assert (found["kind"], found["record_start"], found["record_size"]) == ("record", record.at, record.size)
    assert [(c["passes"], c["reason"]) for c in found["checks"]] == [(True, "")] * 3
    fields = {f["name"]: f for f in found["fields"]}
    raw = encode(record)
    for ours, theirs in NAMES.items():
        at, size = field_position(record, ours)
        if size == 0:
            assert theirs not in fields
            continue
        assert (fields[theirs]["at"], fields[theirs]["size"]) == (at, size), theirs
        assert bytes.fromhex(fields[theirs]["data"]) == raw[at : at + size][:256], theirs
    at = 0
    for field in found["fields"]:  # nothing is left out, nothing told twice
        assert field["at"] == at and not field["wrong"], field
        at += field["size"]
    assert at == record.size
    number = {"queueId": record.queue_id, "queueOffset": record.queue_offset, "preparedOffset": record.prepared_offset}
    assert {ours: fields[NAMES[ours]]["value"] for ours in number} == {ours: str(v) for ours, v in number.items()}
    pairs = dict(record.properties)
    shown = dict(
        f["value"].partition("  0x")[0].removesuffix("\x02").split("\x01", 1)
        for f in found["fields"]
        if f["name"].startswith("property ")
    )
    assert shown == pairs


def test_values_in_peoples_terms(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    def values(name: str) -> dict[str, str]:
        found = said(capsys, store, store.records[list(MESSAGES).index(name)].at)
        return {f["name"]: f["value"] for f in found["fields"]} | {d["name"]: d["value"] for d in found["derived"]}

    plain = values("plain")
    assert plain["BORNTIMESTAMP"] == "1699999999998 ms, 2023-11-14 22:13:19.998 UTC"
    assert plain["BORNHOST"] == "127.0.0.1:50000" and plain["STOREHOST"] == "127.0.0.1:10911"
    assert plain["SYSFLAG"] == "0x0: transaction none, born host IPv4, store host IPv4"
    assert plain["BODY"].startswith('"a plain body"; its checksum')
    assert plain["tags code"] == f'{java_hash("TagA")}: the hash of "TagA"'
    assert plain["offset message id"] == "7F00000100002A9F0000000000000000"
    assert values("ipv6")["STOREHOST"] == "[2001:db8::1]:10911"
    assert values("v2")["MAGICCODE"] == "0xdaa320ab, a message, V2 (since 5.1.0)"
    for kind, name in (("lz4", "LZ4"), ("zstd", "ZSTD"), ("zlib", "zlib")):
        body = values(kind)["BODY"]
        assert body.startswith('"a sentence, again') and f"unpacked with {name}" in body and len(body) < 600
    assert "inner batch" in values("inner")["SYSFLAG"]
    assert values("inner")["inner batch"] == "2 messages, queue offsets from 0 on"
    assert "to be delivered at" in values("delayed")["tags code"]
    assert "no ConsumeQueue entry" in values("rollback")["dispatch"]


def test_entries_that_lead_to_a_message(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    names = list(MESSAGES)

    def pointers(name: str) -> list[dict[str, Any]]:
        return list(said(capsys, store, store.records[names.index(name)].at)["pointers"])

    plain = pointers("plain")
    assert [(p["kind"], p["state"], p["number"]) for p in plain[:1]] == [("queue", "equal", 0)]
    assert (plain[0]["file"], plain[0]["position"]) == ("consumequeue/TopicA/0/00000000000000000000", 0)
    keys = {f"TopicA#{key}" for key in ("k1", "k2", "7F0000010A4C18B4AAC2A2A9985304E9")}
    assert {p["name"] for p in plain[1:]} == keys
    assert {p["values"]["key_hash"] for p in plain[1:]} == {index_hash(key) for key in keys}
    assert all(p["state"] == "equal" and p["position"] == 40 + 4 * 20 + 20 * p["number"] for p in plain[1:])
    assert {(p["kind"], p["state"]) for p in pointers("lmq")} == {("queue", "equal"), ("lmq", "equal")}
    assert [(p["kind"], p["state"]) for p in pointers("inner")] == [("batch", "equal")]
    assert pointers("rollback") == []
    assert all(p["state"] == "equal" for name in names for p in pointers(name))


def test_entries_that_differ_or_are_gone(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3")
    records = [builder.put(Message(body=b"b" * 30, tags="t")) for _ in range(4)]
    damaged = builder.write(tmp_path / "store")
    queue = damaged.root / "consumequeue" / "TopicA" / "0" / f"{0:020d}"
    data = bytearray(queue.read_bytes())
    struct.pack_into(">q", data, 20 + 12, 5)  # entry 1: another tags code
    struct.pack_into(">qiq", data, 40, records[0].at + 8, records[0].size, 0)  # entry 2: into the middle of message 0
    struct.pack_into(">qiq", data, 80, records[3].at, records[3].size, java_hash("t"))  # entry 4: message 3's once more
    queue.write_bytes(data)
    (differs,) = said(capsys, damaged, records[1].at)["pointers"]
    assert differs["state"] == "differs" and differs["differences"] == [f"its tags code is 5, the message's {java_hash('t')}"]
    first = said(capsys, damaged, records[0].at)["pointers"]
    assert [(p["state"], p["number"]) for p in first] == [("equal", 0), ("into the middle", 2)]
    (absent,) = said(capsys, damaged, records[2].at)["pointers"]
    assert (absent["state"], absent["number"], absent["position"]) == ("absent", 2, 40)
    assert absent["differences"] == [f"it leads to {records[0].at + 8}"]
    twice = said(capsys, damaged, records[3].at)["pointers"]
    assert [(p["state"], p["number"]) for p in twice] == [("equal", 3), ("differs", 4)]


DAMAGE = {
    "body": ("BODYCRC", "body_crc", False),
    "physOffset": ("PHYSICALOFFSET", "phy_offset", True),
    "magic": ("MAGICCODE", "magic", False),
    "size": ("TOTALSIZE", "size_mismatch", False),
    "topicLength": (None, "", False),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_the_field_that_fails_is_named(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3")
    records = [builder.put(Message(body=b"body %d" % n, tags="t", keys="k")) for n in range(3)]
    damaged = builder.write(tmp_path / "store")
    assert said(capsys, damaged, records[1].at)["kind"] == "record"  # the clean twin
    flip(damaged, records[1], name, 4 if name == "topicLength" else 1)
    found = said(capsys, damaged, records[1].at)
    blamed, reason, broker_passes = DAMAGE[name]
    assert (found["kind"], found["extent"][:3]) == ("damage", ["damaged", records[1].at, records[2].at])
    audit, recovery = found["checks"][0], found["checks"][1]
    assert not audit["passes"] and recovery["passes"] == broker_passes
    if blamed:
        assert audit["reason"] == reason
        assert [f["name"] for f in found["fields"] if f["wrong"]] == [blamed]
    assert found["before"]["phy_offset"] == records[0].at and found["after"]["phy_offset"] == records[2].at
    if not broker_passes:
        assert found["stop"][0] == records[1].at
    # A place inside of it leads to the record that is broken there.
    inside = said(capsys, damaged, records[1].at + 50)
    assert inside["kind"] == "damage" and inside["record_start"] == records[1].at
    assert bytes.fromhex(inside["around"]) == damaged.segment_of(records[1]).read_bytes()[records[1].at + 50 :][:64]


def test_places_where_no_record_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = Sizes(segment=1024)
    builder = StoreBuilder("5.3.3", sizes, first_offset=2048)
    records = [builder.put(Message(body=b"b" * 200)) for _ in range(12)]
    store = builder.write(tmp_path / "store")
    last = max(r.at for r in records)
    first_of = {base: [r for r in records if r.at // 1024 == base // 1024] for base in (2048, 3072, 4096)}
    inside = said(capsys, store, records[1].at + 100)
    where = inside["kind"], inside["record_start"], inside["position"]
    assert where == ("inside a record", records[1].at, records[1].at - 1948)
    assert inside["before"]["phy_offset"] == records[0].at and inside["after"]["phy_offset"] == records[2].at
    filler_at = first_of[2048][-1].at + first_of[2048][-1].size
    for at in (filler_at, filler_at + 9):
        filler = said(capsys, store, at)
        assert (filler["kind"], filler["record_start"]) == ("filler", filler_at)
        assert filler["after"]["phy_offset"] == 3072
        assert [f["name"] for f in filler["fields"]] == ["TOTALSIZE", "MAGICCODE"]
    unwritten = said(capsys, store, last + records[-1].size)
    assert unwritten["kind"] == "unwritten" and unwritten["before"]["phy_offset"] == last
    below = said(capsys, store, 100)
    assert below["kind"] == "below the minimum" and "2,048" in below["sentence"] and below["after"]["phy_offset"] == 2048
    beyond = said(capsys, store, 1 << 62)
    assert beyond["kind"] == "beyond the end" and beyond["before"]["phy_offset"] == last
    assert said(capsys, store, 3072)["before"]["phy_offset"] == first_of[2048][-1].at
    (store.root / "commitlog" / f"{3072:020d}").unlink()
    missing = said(capsys, store, 3072)
    assert missing["kind"] == "missing segment" and f"commitlog/{3072:020d}" in missing["sentence"]
    assert missing["before"]["phy_offset"] == first_of[2048][-1].at and missing["after"]["phy_offset"] == 4096
    assert [(p["state"], p["number"]) for p in missing["pointers"]] == [("no message to compare with", len(first_of[2048]))]


def test_a_place_that_a_short_or_unread_file_should_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=1024))
    records = [builder.put(Message(body=b"b" * 200)) for _ in range(12)]
    store = builder.write(tmp_path / "store")
    path = store.root / "commitlog" / f"{1024:020d}"
    data = path.read_bytes()
    for length, long in ((500, "500 bytes"), (1, "1 byte"), (0, "0 bytes")):
        path.write_bytes(data[:length])
        found = said(capsys, store, 1024 + 600)
        assert found["kind"] == "after the end of a short file" and found["file"] is None
        assert found["sentence"] == f"commitlog/{1024:020d} is only {long} long, not 1,024: this place lies after its end"
    assert found["before"]["phy_offset"] < 1024 < 2048 == found["after"]["phy_offset"]
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert said(capsys, store, 1024 + 600)["kind"] == "not read"
    last = store.segment_of(records[-1])
    last.write_bytes(last.read_bytes()[:100])
    assert said(capsys, store, int(last.name) + 200)["kind"] == "after the end of a short file"


HOSTILE = "<script>\x1b[31m\u202e'\"../%RETRY%\x07"


def test_hostile_text_stays_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3")
    record = builder.put(
        Message(topic="%RETRY%" + HOSTILE, body=HOSTILE.encode(), keys="k\x1b]0;x", properties=(("n\x1b[2J\u2066", "v\n"),))
    )
    store = builder.write(tmp_path / "store")
    for found in (text(capsys, store, record.at), json.dumps(said(capsys, store, record.at))):
        assert "RETRY" in found
        assert not set(found) & set("\x1b\x07\u202e\u2066")
    assert text(capsys, store, record.at).count("\\x1b") >= 4


@pytest.mark.parametrize("mode", ["hide", "hash"])
def test_redaction_hides_what_people_wrote(tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("5.3.3")
    message = Message(topic="Plain", body=b"secretbody", keys="secretkey", tags="secrettag", uniq="SECRETUNIQ")
    records = [builder.put(message) for _ in range(2)]
    store = builder.write(tmp_path / "store")
    flip(store, records[1], "body")
    for record, at in ((records[0], records[0].at), (records[1], records[1].at), (records[1], records[1].at + 70)):
        open_text = text(capsys, store, at)
        assert "secrettag" in open_text and b"secretbo".hex(" ") in open_text
        for found in (text(capsys, store, at, "--redact", mode), json.dumps(said(capsys, store, at, "--redact", mode))):
            assert "Plain" in found and f"{record.queue_offset}" in found
            low = found.lower()
            for word in ("secretbod", "secretkey", "secrettag", "secretuniq"):
                assert word not in low and word.encode().hex() not in low and word.encode()[:6].hex(" ") not in low


def test_redaction_trusts_no_length_that_damage_may_have_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With BODYLENGTH a few bytes off, letters of the body stand where a topic would."""
    builder = StoreBuilder("5.3.3")
    records = [builder.put(Message(topic="Plain", body=b"x" * 20 + b"\x0esecretbody", keys="k" * 30)) for _ in range(2)]
    store = builder.write(tmp_path / "store")
    path = store.segment_of(records[0])
    data = bytearray(path.read_bytes())
    at, _ = field_position(records[0], "bodyLength")
    data[at + 3] = 20
    path.write_bytes(data)
    assert "secretbody" in text(capsys, store, 0)
    hidden = text(capsys, store, 0, "--redact", "hide")
    assert "secretbody" not in hidden and b"secret".hex(" ") not in hidden and "TOPIC " in hidden


def test_text_fits_the_width_and_shows_the_place(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    record = store.records[0]
    lines = text(capsys, store, record.at).splitlines()
    assert lines[0] == f"physical offset 0: a valid message of {record.size:,} bytes"
    at, _ = field_position(record, "queueOffset")
    (line,) = [line for line in lines if " QUEUEOFFSET " in line]
    assert line.split()[:4] == [str(at), str(at), "00", "00"] and line.split()[-1] == "0"
    assert max(len(line) for line in lines[: lines.index("What leads here")]) <= 130


def test_arguments_that_make_no_sense(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(store.root)
    (tmp_path / "empty").mkdir()
    for words, code, sentence in (
        (["explain", root], 2, "--phy-offset N is missing"),
        (["explain", "--phy-offset", "1"], 2, "takes one STORE"),
        (["explain", root, root, "--phy-offset", "1"], 2, "2 were given"),
        (["explain", root, "--phy-offset", "1_0"], 2, "--phy-offset '1_0': not a number"),
        (["explain", root, "--phy-offset=-1"], 2, "not a number"),
        (["explain", root, "--phy-offset", str(1 << 63)], 2, "not a number"),
        (["explain", root, "--phy-offset", "1", "--release", "3.0.0"], 2, "3.0.0"),
        (["explain", root, "--phy-ofset", "1"], 2, "did you mean --phy-offset?"),
        (["explain", str(tmp_path / "none"), "--phy-offset", "1"], 3, "there is nothing of this name"),
        (["explain", str(tmp_path / "empty"), "--phy-offset", "1"], 3, "an empty directory"),
    ):
        assert entry.main(words) == code, words
        answer = capsys.readouterr()
        assert sentence in answer.err and answer.err.count("\n") == 1 and not answer.out, answer.err


def test_a_store_without_a_commitlog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    found = said(capsys, tmp_path / "store", 5)
    assert found["kind"] == "no CommitLog" and found["sentence"] == "the copy holds no CommitLog segment"
    assert "no CommitLog segment" in text(capsys, tmp_path / "store", 5)


@pytest.mark.parametrize("prefix", ["g19", "g49", "g75", "g78"])
def test_real_stores_at_any_place(prefix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every message of the queues is where its entry leads, and any byte near a segment's edges can be asked for."""
    (case,) = corpus_tools.cases(prefix)
    root = case.unpack(tmp_path)
    options = ("--release", case.release, "--broker-conf", str(tmp_path / "broker.conf"))
    entries = [e for e in case.entries() or [] if "p" in e and e.get("s", 0) not in (0, 0x7FFFFFFF) and "t" in e]
    met = 0
    for there in entries[:: max(1, len(entries) // 9)]:
        found = said(capsys, root, there["p"], *options)
        if prefix == "g78" and found["kind"] == "record":  # its queues were not touched
            assert found["record_size"] == there["s"]
            met += any(p["values"].get("phy_offset") == there["p"] and p["state"] == "equal" for p in found["pointers"])
    assert met >= 5 or prefix != "g78"  # but for the last ones, which a start had yet to dispatch
    for segment in sorted((root / "commitlog").iterdir())[:3]:
        if segment.is_file() and segment.name.isdigit() and segment.stat().st_size:
            for at in (0, 1, 7, segment.stat().st_size - 1):
                assert said(capsys, root, int(segment.name) + at, *options)["file"] is not None


def test_an_assumed_release_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    builder = StoreBuilder("4.9.8", Sizes())
    builder.put(Message("T", 0, b"x"))
    store = builder.write(tmp_path)
    for words in (
        ["explain", str(store.root), "--phy-offset", "0"],
        ["query", str(store.root), "--view", "broker", "--topic", "T"],
    ):
        assert entry.main(words) == 0
        assert f"No release was named: RocketMQ {NEWEST_RELEASE}, the newest known, is assumed" in capsys.readouterr().err
        assert entry.main([*words, "--release", "4.9.8"]) == 0
        assert "assumed" not in capsys.readouterr().err

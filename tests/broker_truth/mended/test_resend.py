"""examples/resend against a real broker: what stores would lose, sent again and read back, once each (mark: broker)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import time
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard

from jobs import entry
from jobs.runtime import setup as environment
from store_io.messages.lost.sendable import NOT_SENT
from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.cluster import NAMESRV, SETTINGS, Cluster
from tests.broker_truth.harness.kinds import Session
from tests.broker_truth.harness.real_broker import class_path
from tests.support.answers import product
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Record, decode
from tests.support.stores.timers import timer_store

pytestmark = pytest.mark.broker

RELEASE = "5.3.3"
PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "resend" / "Resend.java"
CASES = ("g37-533-crc-props", "g71-498-cq-last-file-zero", "g113-533-dledger-killed-late")
STOPPED_AFTER = 25
MORE = "sent-again"
HOSTILE = {"@type": "java.lang.Class", "$ref": "$", "plain": "x"}
LONGEST_TOPIC = 127  # of a client; a broker stores longer ones
COUNTED = "1 sent, 1 were sent before, 0 left out, 0 the same as one that is sent, 0 refused"
ACCESS, SECRET = "rocketmq", "s3cret: #'x"
Line = dict[str, Any]
Run = tuple[int, str, str]  # exit code, standard output, standard error
LINE: Line = {
    "topic": MORE, "queue_id": 0, "tags": None, "keys": None, "unique_key": "M1", "flag": 0, "born_time_ms": 1,
    "delay_level": None, "deliver_time_ms": None, "why_not": None,
    "properties": list(HOSTILE.items()), "body_base64": "aGVsbG8=",
}  # fmt: skip


@dataclass
class Said:
    """What the runs of the program said, and the file's journal after each. unknown: lines whose sending had no answer."""

    runs: list[Run] = field(default_factory=list)
    journals: list[str] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    more: list[Run] = field(default_factory=list)


def lines_of(root: Path, release: str, conf: str) -> tuple[list[str], int]:
    """(the lines of a store's lost messages, how many the plan counts)."""
    file, out = root.with_name("broker.conf"), root.with_name("lost.jsonl")
    file.write_text(conf, "utf-8")
    words = ["query", str(root), "--release", release, "--broker-conf", str(file), "--lost", "--format", "resend"]
    assert entry.main([*words, "--out", str(out)]) == 0
    broker = product.audit(root, release, conf).broker
    assert broker is not None
    timer = (broker["timer"] or {}).get("lost") or {"messages": 0}
    return out.read_text("ascii").splitlines(keepends=True), broker["lost"]["messages"] + timer["messages"]


def original(roots: Sequence[Path], line: Line) -> list[Record]:
    """The records at this physical offset, read from the stores' own files without the product."""
    found = []
    for root in roots:
        for path in [*root.glob("commitlog/*"), *root.glob("dledger-*/data/*")]:
            data, base = path.read_bytes(), int(path.name)
            at = line["phy_offset"] - base
            if 0 <= at < len(data):
                with suppress(ValueError, struct.error):  # another store's place, in the middle of something
                    found.append(decode(data, at))
    return found


def body_of(record: Record) -> bytes:
    if not record.sys_flag & 1:
        return record.body
    kind = record.sys_flag >> 8 & 7
    unpack = {1: lz4.frame.decompress, 2: lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)}
    return unpack.get(kind, zlib.decompress)(record.body)


def told(record: Record, unique: bool = True) -> Mapping[str, Any]:
    """What a consumer learns of a message, without what a broker assigns anew. unique: with its unique key."""
    left = set(NOT_SENT) if unique else {*NOT_SENT, "UNIQ_KEY"}
    own = {name: value for name, value in record.properties.items() if name not in left}
    return {"flag": record.flag, "body": body_of(record), "properties": own}


@dataclass(frozen=True)
class Client:
    """The program, compiled, and one file that it sends to a cluster. classes: where its classes are."""

    cluster: Cluster
    classes: Path
    file: Path

    @property
    def journal(self) -> str:
        path = self.file.with_name(self.file.name + ".sent")
        return path.read_text("utf-8") if path.exists() else ""

    def command(self, *words: str) -> list[str]:
        return self.cluster.client("Resend", "--namesrv", NAMESRV, *words, str(self.file), classes=str(self.classes))

    def run(self, *words: str, **environment: str) -> Run:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, env={**os.environ, **environment})
        return done.returncode, done.stdout, done.stderr


def compiled(java: str, jars: Sequence[Path], classes: Path) -> Path:
    """Where the program's classes are; it compiles without a warning."""
    compiler = [f"{java}/bin/javac", "-Xlint:all,-path,-options", "-Werror", "-d", str(classes), "-cp", ":".join(map(str, jars))]
    subprocess.run([*compiler, str(PROGRAM)], check=True)
    return classes


def send_all(home: Path, java: str, jars: Sequence[Path], file: Path, topics: dict[str, int]) -> Said:
    """In a network of its own: try it without sending, send and be killed, send the rest, and send nothing more."""
    said, classes = Said(), compiled(java, jars, home / "classes")
    with Cluster(home / "cluster", java, jars, topics) as cluster:
        client = Client(cluster, classes, file)

        def keep(run: Run) -> int:
            said.runs.append(run)
            said.journals.append(client.journal)
            return run[0]

        # As it is: Java compiles it on the way.
        first = cluster.wait(cluster.client(str(PROGRAM), "--namesrv", NAMESRV, "--dry-run", str(file)))
        keep((first.returncode, first.stdout, first.stderr))
        process = subprocess.Popen(client.command("--rate", "20"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and client.journal.count("\nsent") < STOPPED_AFTER:
            time.sleep(0.02)
        process.kill()
        process.wait()
        last = client.journal.splitlines()[-1].split()
        if last[0] == "sending":
            said.unknown.append(int(last[1]))
            assert keep(client.run("--rate", "2000")) == 3
        keep(client.run("--rate", "2000", "--unknown", "skip"))
        keep(client.run("--rate", "2000"))
        said.runs.append(client.run("--to-topic", "nowhere"))
        said.more = further_runs(replace(client, file=file.with_name("more.jsonl")), max(topics, key=len))
    return said


def lines_in(file: Path, *lines: Line) -> str:
    """Write them; the SHA-256 of the file."""
    file.write_text("".join(json.dumps(one) + "\n" for one in lines), "ascii")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def further_runs(client: Client, long_topic: str) -> list[Run]:
    """Two lines of which the first has no answer, with names that a parser may obey: sent, and not taken for another file's."""
    own = lines_in(client.file, LINE, {**LINE, "unique_key": "M2"})
    journal = client.file.with_name(client.file.name + ".sent")
    journal.write_text(f"file {own}\nsending 1\nsending 2\nsent 2 x\n", "ascii")
    found = [client.run(), client.run("--unknown", "send")]
    lines_in(client.file, *({**LINE, "topic": long_topic, "deliver_time_ms": due} for due in (1, None)))
    found.append(client.run())
    journal.unlink()
    return [*found, client.run("--dry-run")]


def send_signed(home: Path, java: str, jars: Sequence[Path]) -> tuple[list[Run], str]:
    """(runs, the journal) in a network of its own, against a broker that takes signed requests alone: without a key, with half of
    one, with a wrong one, with one line by a file of keys, with the rest by the environment."""
    file, keys = home / "lost.jsonl", home / "tools.yml"
    lines_in(file, {**LINE, "unique_key": "M1\nsent 2 x\u009b31m"}, {**LINE, "topic": "other"})
    keys.write_text(f"# as mqadmin has it\naccessKey: {ACCESS}\nsecretKey: '{SECRET}'\n", "utf-8")
    users = {
        "initAuthenticationUser": ("username", "password"),
        "innerClientAuthenticationCredentials": ("accessKey", "secretKey"),
    }
    provider = "org.apache.rocketmq.auth.authentication.provider"
    settings = {
        "authenticationEnabled": "true",
        "authenticationProvider": f"{provider}.DefaultAuthenticationProvider",
        "authenticationMetadataProvider": f"{provider}.LocalAuthenticationMetadataProvider",
        "authConfigPath": str(home / "auth"),
        **{name: json.dumps(dict(zip(keys_of, (ACCESS, SECRET), strict=True))) for name, keys_of in users.items()},
    }
    with Cluster(home / "cluster", java, jars, {MORE: 1, "other": 1}, settings) as cluster:
        client = Client(cluster, compiled(java, jars, home / "classes"), file)
        cluster.wait(client.command("--dry-run"))
        runs = [
            client.run(),
            client.run(ROCKETMQ_ACCESS_KEY=ACCESS),
            client.run(ROCKETMQ_ACCESS_KEY=ACCESS, ROCKETMQ_SECRET_KEY="another"),
            client.run("--topic", MORE, "--keys", str(keys)),
            client.run(ROCKETMQ_ACCESS_KEY=ACCESS, ROCKETMQ_SECRET_KEY=SECRET),
        ]
        return runs, client.journal


@pytest.fixture
def java() -> str:
    """A Java's home, where this machine can run a cluster of its own and compile the program."""
    own_network.needed()
    found = str(environment.java_runtime().home)
    if not Path(found, "bin", "javac").exists():
        pytest.skip(f"{found} has no Java compiler")
    return found


def test_a_broker_with_access_control_takes_what_is_signed(tmp_path: Path, java: str) -> None:
    (tmp_path / "cluster").mkdir()
    runs, journal = own_network.run(send_signed, tmp_path, java, class_path(RELEASE, cluster=True))
    assert [code for code, _, _ in runs] == [3, 2, 3, 0, 0], runs
    assert "refused" in runs[0][2] and "belong together: [accessKey] alone" in runs[1][2] and "signature" in runs[2][2]
    assert [line.split()[:2] for line in journal.split("\n") if line.startswith("sent")] == [["sent", "1"], ["sent", "2"]]
    assert "M1 sent 2 x 31m" in journal and runs[-1][1].strip().endswith("\n" + COUNTED), runs[-1][1][-200:]
    assert SECRET not in journal and not any(SECRET in text for run in runs for text in run[1:])


def test_without_a_name_server_it_says_so_and_asks_for_no_topic(tmp_path: Path, java: str) -> None:
    jars, file = class_path(RELEASE, cluster=True), tmp_path / "lost.jsonl"
    file.write_text(json.dumps(LINE) + "\n")
    program = [f"{java}/bin/java", "-cp", ":".join(map(str, [*jars, compiled(java, jars, tmp_path / "classes")])), "Resend"]
    for words, code, said in (
        ([], 2, "resend: --namesrv HOST:PORT is missing"),
        (["--namesrv", "127.0.0.1:1"], 3, "resend: no name server answers at 127.0.0.1:1; nothing was sent"),
    ):
        done = subprocess.run([*program, *words, str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == code and said in done.stderr and "updateTopic" not in done.stderr, done.stderr


def test_what_stores_would_lose_is_sent_once_each_and_read_back(tmp_path: Path, java: str) -> None:
    jars = class_path(RELEASE, cluster=True)
    texts, roots = list[str](), list[Path]()
    for name in CASES:
        (case,) = corpus_tools.cases(name)
        roots.append(case.unpack(tmp_path / name))
        lines, counted = lines_of(roots[-1], case.release, case.broker_conf)
        assert len(lines) == counted > 0
        texts += lines
    made = timer_store(tmp_path / "timers", waiting=300)
    (made.root / "timerwheel").unlink()
    lines, counted = lines_of(made.root, RELEASE, made.conf)
    assert len(lines) == counted == 194
    texts, roots = texts + lines, [*roots, made.root]
    file = tmp_path / "lost.jsonl"
    file.write_text("".join(texts), "ascii")
    all_wanted = [(number, line) for number, line in enumerate(map(json.loads, texts), 1) if line["why_not"] is None]
    wanted = [(number, line) for number, line in all_wanted if len(line["topic"]) <= LONGEST_TOPIC]
    refused = {number for number, _ in all_wanted} - {number for number, _ in wanted}
    topics = dict.fromkeys({line["topic"] for _, line in all_wanted} | {MORE}, 8)
    assert refused and all(line["queue_id"] < 8 for _, line in wanted)
    home = tmp_path / "home"
    home.mkdir()
    (home / "cluster").mkdir()
    said = own_network.run(send_all, home, java, jars, file, topics)

    assert f"{len(wanted)} would be sent, 0 were sent before, {len(texts) - len(all_wanted)} left out" in said.runs[0][1]
    assert f"{len(refused)}, the client refuses it: The specified topic is longer" in said.runs[0][1] and said.journals[0] == ""
    assert said.runs[-2][0] == 3 and f"{len(refused)} refused" in said.runs[-2][2], said.runs[1:-1]
    assert said.runs[-2][2].count("longer than topic max length") == len(refused)
    assert re.search(rf"^0 sent, {len(wanted)} were sent before", said.runs[-2][1], re.MULTILINE)
    assert said.runs[-1][0] == 3 and "topic nowhere: no way to it" in said.runs[-1][2] and "nothing was sent" in said.runs[-1][2]
    if said.unknown:
        assert "its sending had no answer" in said.runs[1][2]
    codes = [code for code, _, _ in said.more]
    assert codes == [3, 0, 2, 0], said.more
    assert "line 1: its sending had no answer" in said.more[0][2] and "1 sent, 1 were sent before" in said.more[1][1]
    assert "belongs to another file" in said.more[2][2] and "0 the same as one that is sent, 2 refused" in said.more[3][1]
    journal = said.journals[-1]
    sent = {int(line.split()[1]): line.split() for line in journal.splitlines() if line.startswith("sent ")}
    assert set(sent) | set(said.unknown) == {number for number, _ in wanted}

    seen = Session(RELEASE, home / "cluster" / "store", SETTINGS).run()
    assert seen.served is not None
    by_queue: dict[tuple[str, int], list[tuple[int, Line]]] = defaultdict(list)
    for number, line in wanted:
        by_queue[line["topic"], line["queue_id"]].append((number, line))
    total = 0
    for key, expected in by_queue.items():
        got = [message.record for message in seen.served.queues[key].messages]
        keys = [record.properties.get("UNIQ_KEY") for record in got]
        expected = [(n, line) for n, line in expected if n not in said.unknown or line["unique_key"] in keys]
        assert len(got) == len(expected), key
        for record, (number, line) in zip(got, expected, strict=True):
            unique = line["unique_key"] is not None  # a client gives one to a message without
            assert told(record, unique) in [told(old) for old in original(roots, line)], (number, line)
            if number in sent:
                place = sent[number]
                assert place[2] == f"broker-a:{key[1]}" and int(place[3]) == record.queue_offset and place[6] == "SEND_OK"
                assert place[4] == line["unique_key"] or line["unique_key"] is None
        total += len(got)
    assert len(wanted) - len(said.unknown) <= total <= len(wanted)
    assert {key for key, queue in seen.served.queues.items() if queue.messages} <= {*by_queue, (MORE, 0)}
    (again,) = seen.served.queues[MORE, 0].messages
    assert again.record.properties["UNIQ_KEY"] == "M1" and HOSTILE.items() <= again.record.properties.items()

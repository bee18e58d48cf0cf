"""Real RocketMQ message stores, driven from Python: the released jars in a JVM of their own, through py4j.

    with Jvm("5.3.3") as jvm, jvm.broker(store, {"mappedFileSizeCommitLog": 131072}) as broker:
        broker.load()
        broker.start()
        put = broker.put([Put("Topic", b"body", tags="a", keys="k1 k2")])
        broker.catch_up()
        served = broker.serve()

What differs from a broker in production: the service that delivers delayed messages is kept from running, so that a store
stays what was put into it; nothing is deleted for age or for a full disk; replication listens on whatever port is free.
Delayed messages are put as a broker's hook (5.0 on) or its store (before) rewrites them.

`Broker` is one DefaultMessageStore on one directory. A JVM may hold several, one after the other or side by side; `Jvm.kill`
ends them all as kill -9 does. The class path is fetched once (brokers.toml names each jar and its SHA-256).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from dev.peers import JAVA_OPTIONS
from jobs.runtime import setup as environment
from tests.support.stores.builders import Record, decode

HERE = Path(__file__).resolve().parent
RELEASES = ("4.8.0", "4.9.8", "5.1.4", "5.3.3", "5.4.0", "5.5.0", "5.5.1")
SAFE = {
    "haListenPort": 0,
    "brokerRole": "ASYNC_MASTER",
    "longPollingEnable": "false",
    "cleanFileForciblyEnable": "false",
    "fileReservedTime": 1_000_000,  # hours
    "cleanResourceInterval": 100_000_000,  # ms
    "diskMaxUsedSpaceRatio": 95,
    "maxTransferCountOnMessageInDisk": 32,
    "maxTransferBytesOnMessageInDisk": 1 << 24,
    "maxMsgsNumBatch": 100_000,  # how many messages queryMessage answers with at most
}
NORMAL, BATCH, INNER_BATCH = 0, 1, 2
PREPARED, COMMIT, ROLLBACK = 0x4, 0x8, 0xC
_INNER_BATCH_FLAGS = 0x40 | 0x80
ANSWERS_AT_MOST = 100_000


def conf_of(settings: Mapping[str, Any]) -> str:
    """The broker.conf with these settings."""
    return "".join(f"{key}={value}\n" for key, value in settings.items())


# ---- the jars ------------------------------------------------------------------------------------------------------


def pinned_releases() -> list[str]:
    """The releases whose own jars can be fetched."""
    return [name for name in tomllib.loads((HERE / "brokers.toml").read_text("utf-8")) if "-" not in name]


def class_path(release: str, dledger: bool = False, cluster: bool = False, managers: bool = False) -> list[Path]:
    """The release's jars, fetched where they are not there yet. Raises environment.SetupFailed with a sentence.

    cluster: with those of a name server, a whole broker and a client.  managers: with those of a broker's managers.
    """
    pins, found = tomllib.loads((HERE / "brokers.toml").read_text("utf-8")), []
    further = [kind for kind, wanted in (("dledger", dledger), ("cluster", cluster), ("managers", managers)) if wanted]
    for name in [release, *(f"{release}-{kind}" for kind in further)]:
        folder = environment.state() / "brokers" / name
        environment.fetch_jars(pins[name], folder, f"RocketMQ {name}'s jars", "tests/broker_truth/harness/brokers.toml")
        found += sorted(folder.glob("*.jar"))
    return found


def _spark_jars(*names: str) -> list[Path]:
    import pyspark

    folder = Path(pyspark.__file__).parent / "jars"
    return [next(folder.glob(f"{name}-[0-9]*.jar")) for name in names]


class Jvm:
    """A JVM with one release on its class path. `log`: what it printed.  jars: in place of `class_path(release)`."""

    def __init__(self, release: str, jars: Sequence[Path] | None = None, options: Sequence[str] = ("-XX:TieredStopAtLevel=1",)):
        self.release = release
        self._home = Path(tempfile.mkdtemp(prefix="broker-jvm-"))  # logs go below the user's home unless it is another
        self.log = self._home / "output.log"
        path = [*(jars or class_path(release)), *_spark_jars("py4j", "janino", "commons-compiler")]
        java = environment.java_runtime().home
        arguments = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:-UsePerfData", f"-Duser.home={self._home}", *options, *JAVA_OPTIONS]
        with open(self.log, "wb") as log:
            port, token, process = launch_gateway(
                jarpath=str(path[-3]),
                classpath=os.pathsep.join(map(str, path)),
                javaopts=arguments,
                java_path=f"{java}/bin/java",
                die_on_exit=True,
                enable_auth=True,
                return_proc=True,
                redirect_stdout=log,
                redirect_stderr=log,
                cwd=str(self._home),
            )
        self.process: subprocess.Popen[bytes] = process
        self.gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        self._harness = self.compiled("Harness")

    def compiled(self, name: str) -> Any:
        """The constructor of the class of that name beside this module."""
        compiler = self.gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook((HERE / f"{name}.java").read_text("utf-8"))
        return compiler.getClassLoader().loadClass(name).getConstructors()[0]

    def broker(
        self,
        store: Path,
        settings: Mapping[str, Any] | str = "",
        batch_topics: Iterable[str] = (),
        compacted_topics: Iterable[str] = (),
        topics: Mapping[str, int] = {},
    ) -> Broker:
        """A message store on this directory; nothing is read until `load`.

        settings: RocketMQ's own keys, as a mapping or as the text of a broker.conf.  batch_topics: those of type BatchCQ.
        compacted_topics: those with cleanup.policy=COMPACTION.  topics: others that it knows, with their numbers of queues.
        """
        text = settings if isinstance(settings, str) else conf_of(settings)
        own = [
            line for line in text.splitlines() if not re.match(r"\s*(storePath\w*|haListenPort|brokerRole|listenPort)\b", line)
        ]
        text = "\n".join([*own, *(f"{key}={value}" for key, value in SAFE.items())])
        named = ",".join(f"{name}={queues}" for name, queues in topics.items())
        arguments = self.gateway.new_array(self.gateway.jvm.java.lang.Object, 5)
        for number, value in enumerate((str(store), text, ",".join(batch_topics), ",".join(compacted_topics), named)):
            arguments[number] = value
        return Broker(self, Path(store), self._harness.newInstance(arguments))

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.gateway.close(keep_callback_server=True)
        # Objects of it that are still held here would otherwise be given back to a process that is gone, whenever the
        # garbage collector meets them.
        self.gateway._gateway_client.is_connected = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Kill it and remove its log."""
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)


class Jvms:
    """A JVM per release, started when it is first asked for. One that was killed is replaced."""

    def __init__(self) -> None:
        self._running: dict[str, Jvm] = {}

    def of(self, release: str) -> Jvm:
        if release not in self._running or not self._running[release].alive:
            self._running[release] = Jvm(release)
        return self._running[release]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        for jvm in self._running.values():
            jvm.close()


# ---- what is put ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Put:
    """A message to put. `parts`: (properties, body) of the messages of a batch; `kind` tells which sort of batch.

    delay: a level, rewritten for the delay topic as brokers do.  lmq: names of light queues that it goes to as well.
    """

    topic: str
    body: bytes = b""
    queue_id: int = 0
    tags: str | None = None
    keys: str | None = None
    uniq: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    delay: int = 0
    transaction: int = 0
    prepared_offset: int = 0
    sys_flag: int = 0
    flag: int = 0
    host: str = "127.0.0.1"
    lmq: Sequence[str] = ()
    kind: int = NORMAL
    parts: Sequence[tuple[Mapping[str, str], bytes]] = ()


@dataclass(frozen=True)
class PutAnswer:
    """What the store answered. Only `status` is set where it refused."""

    status: str
    phy_offset: int = -1
    size: int = 0
    queue_offset: int = -1
    store_time: int = 0
    messages: int = 0


def _text(value: str) -> bytes:
    """Java's modified UTF-8, as DataInput.readUTF reads it."""
    data = bytearray()
    for (unit,) in struct.iter_unpack(">H", value.encode("utf-16-be")):
        if 0 < unit < 0x80:
            data.append(unit)
        elif unit < 0x800:
            data += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
        else:
            data += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))
    return struct.pack(">H", len(data)) + bytes(data)


def _properties(properties: Mapping[str, str]) -> bytes:
    return struct.pack(">i", len(properties)) + b"".join(_text(k) + _text(v) for k, v in properties.items())


def _block(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _pack(message: Put, delays_by_hook: bool) -> bytes:
    properties = dict(message.properties)
    for name, value in (("TAGS", message.tags), ("KEYS", message.keys), ("UNIQ_KEY", message.uniq)):
        if value is not None:
            properties[name] = value
    topic, queue_id = message.topic, message.queue_id
    if message.delay:
        properties["DELAY"] = str(message.delay)
        if delays_by_hook:
            properties |= {"REAL_TOPIC": topic, "REAL_QID": str(queue_id)}
            topic, queue_id = "SCHEDULE_TOPIC_XXXX", message.delay - 1
    if message.lmq:
        properties["INNER_MULTI_DISPATCH"] = ",".join(message.lmq)
    sys_flag = message.sys_flag | message.transaction
    if message.kind == INNER_BATCH:
        sys_flag |= _INNER_BATCH_FLAGS
        properties["INNER_NUM"] = str(len(message.parts))
    packed = struct.pack(">b", message.kind) + _text(topic)
    packed += struct.pack(">iiiq", queue_id, sys_flag, message.flag, message.prepared_offset) + _text(message.host)
    packed += _properties(properties) + _block(message.body)
    if message.kind != NORMAL:
        packed += struct.pack(">i", len(message.parts))
        packed += b"".join(_properties(properties) + _block(body) for properties, body in message.parts)
    return packed


# ---- what is served ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Message:
    """A message as getMessage served it: at which queue offset, and its record, byte for byte."""

    topic: str
    queue_id: int
    queue_offset: int
    data: bytes

    @cached_property
    def record(self) -> Record:
        return decode(self.data, 0)

    @property
    def phy_offset(self) -> int:
        return self.record.phy_offset

    @property
    def keys(self) -> list[str]:
        """What queryMessage finds it by."""
        properties = self.record.properties
        keys = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
        return keys + [key for key in properties.get("KEYS", "").split(" ") if key]


@dataclass(frozen=True)
class Queue:
    """One queue as served.

    answers: status -> how often.  skipped: offsets from min up to max that got no message.  unreadable: those of them that
    were answered with bytes that are no record.
    """

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    max_phy_offset: int
    messages: tuple[Message, ...]
    answers: Mapping[str, int]
    skipped: tuple[int, ...]
    unreadable: tuple[int, ...]


@dataclass(frozen=True)
class Served:
    """All that a store serves. `key_misses`: (topic, key, physical offset) that queryMessage does not answer with."""

    queues: Mapping[tuple[str, int], Queue]
    key_hits: int
    key_misses: tuple[tuple[str, str, int], ...]

    @property
    def messages(self) -> list[Message]:
        return [message for _, queue in sorted(self.queues.items()) for message in queue.messages]


def batch_topics(root: Path) -> list[str]:
    """The topics of type BatchCQ: those that config/topics.json tells, without it those that have queues of that type."""
    told, folder = root / "config" / "topics.json", root / "batchconsumequeue"
    if told.exists():
        table = json.loads(told.read_text("utf-8"))["topicConfigTable"]
        return sorted(n for n, t in table.items() if (t.get("attributes") or {}).get("queue.type") == "BatchCQ")
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


# ---- a message store -----------------------------------------------------------------------------------------------


class Broker:
    """One DefaultMessageStore. `java`: the object itself, for what has no method here."""

    def __init__(self, jvm: Jvm, root: Path, harness: Any):
        self.jvm, self.root, self._harness = jvm, root, harness
        self.java = self.field(harness, "store")
        self._by_hook = bool(harness.delaysByHook())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        """Stop, without waiting for it: `shutdown` before leaving where the directory is to be that of a clean stop."""
        if self.jvm.alive:
            with suppress(Exception):
                self._harness.abandon()

    def field(self, owner: Any, name: str) -> Any:
        """The value of a Java field of whatever access."""
        return self._harness.field(owner, name)

    def load(self) -> bool:
        """load(): recovery. Raises Py4JJavaError where the broker throws."""
        return bool(self.java.load())

    def start(self, seconds: float = 60) -> None:
        """start(), until it has returned and all is dispatched. Raises TimeoutError: a 4.x start may hang for ever."""
        self._harness.start()
        end = time.monotonic() + seconds
        while (state := str(self._harness.startState())) != "started":
            if state != "starting":
                raise RuntimeError(state)
            if time.monotonic() > end:
                raise TimeoutError(f"start() has not returned after {seconds} s")
            time.sleep(0.005)
        self.catch_up(max(0.1, end - time.monotonic()))
        if self.jvm.release >= "5.3" and self.java.getMessageStoreConfig().isReadUnCommitted():
            self._stand_still()  # what is not confirmed is dispatched, too, and nothing waits for it

    def begin(self) -> None:
        """Load and start, on a store on which both must come to an end."""
        assert self.load()
        self.start()

    def lead(self, seconds: float = 60) -> None:
        """Of a started DLedger store: wait until this node, alone in its group, leads, and all is committed and dispatched.

        Then what a broker does when its node has become leader. Source: DLedgerRoleChangeHandler.
        """
        end = time.monotonic() + seconds
        server = self.field(self.java.getCommitLog(), "dLedgerServer")
        log = self.field(server, "dLedgerStore")
        while not (server.getMemberState().isLeader() and log.getLedgerEndIndex() in (-1, log.getCommittedIndex())):
            if time.monotonic() > end:
                raise TimeoutError(f"not a leader with all committed after {seconds} s")
            time.sleep(0.01)
        self.catch_up(max(0.1, end - time.monotonic()))
        self.java.recoverTopicQueueTable()

    def fence(self) -> None:
        """Controller mode: as the broker is until its controller has answered. Before `load`."""
        self._harness.fence(True)

    def elect(self, epoch: int) -> bool:
        """Controller mode, after `start`: what the broker does when its controller makes it, alone, the master of this epoch."""
        elected = bool(self._harness.elect(epoch))
        self.catch_up()
        return elected

    def load_timers(self) -> bool:
        """Load the timers, after `load` and before `start`."""
        return bool(self._harness.loadTimers())

    def start_timers(self) -> None:
        """Take and deliver timers from now on, as a master does; `shutdown` stops them first."""
        self._harness.startTimers()

    def catch_up(self, seconds: float = 60) -> None:
        """Wait until all that is in the CommitLog is dispatched."""
        end = time.monotonic() + seconds
        while self.java.dispatchBehindBytes() > 0:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.java.dispatchBehindBytes()} bytes are not dispatched after {seconds} s")
            time.sleep(0.005)

    def _stand_still(self) -> None:
        """Wait until the dispatching thread moves no more, however far that is."""
        seen, same = -1, 0
        while same < 10:
            time.sleep(0.02)
            at = int(self.java.getReputFromOffset())
            same = same + 1 if at == seen else 0
            seen = at

    def shutdown(self) -> None:
        """A clean stop; 5.x takes more than three seconds for it."""
        self._harness.shutdown()

    # ---- writing ---------------------------------------------------------------------------------------------------

    def put(self, messages: Sequence[Put]) -> list[PutAnswer]:
        """Put them in this order, through putMessage and putMessages."""
        packed = struct.pack(">i", len(messages)) + b"".join(_pack(message, self._by_hook) for message in messages)
        answers, found = _Reader(self._harness.put(packed)), []
        for _ in messages:
            status = answers.text()
            found.append(PutAnswer(status, *answers.take(">qiqqi")) if answers.take(">?")[0] else PutAnswer(status))
        return found

    def compact(self, topic: str, queue_id: int) -> None:
        """Compact a queue of a compacted topic now."""
        self._harness.compact(topic, queue_id)

    # ---- reading ---------------------------------------------------------------------------------------------------

    def serve(self, keys: bool = True) -> Served:
        """Every message of every queue through getMessage, and where asked each of its keys through queryMessage."""
        queues = {}
        for (topic, queue_id), (least, end, max_phy) in self.queues().items():
            messages, answers, skipped, unreadable = [], Counter[str](), [], []
            reply = _Reader(self._harness.read(topic, queue_id, max(least, 0), end, 1))
            while not reply.done:
                (offset,) = reply.take(">q")
                status = reply.text()
                answers[status] += 1
                then, buffers = reply.take(">qi")
                records = [reply.block() for _ in range(buffers)]
                at = offset
                for message in (Message(topic, queue_id, then - _messages_in(data), data) for data in records):
                    try:
                        found = message.record.size <= len(message.data)
                    except (ValueError, struct.error):
                        found = False
                    if found:
                        skipped += range(at, message.queue_offset)
                        messages.append(message)
                        at = then
                    else:
                        unreadable.append(message.queue_offset)
                skipped += range(at, min(then, end))
            queues[topic, queue_id] = Queue(
                topic, queue_id, least, end, max_phy, tuple(messages), answers, tuple(skipped), tuple(unreadable)
            )
        hits, misses = self.look_up([m for q in queues.values() for m in q.messages]) if keys else (0, [])
        return Served(queues, hits, tuple(misses))

    def pull(self, topic: str, queue_id: int, most: int = 1 << 62, ends: tuple[int, int] | None = None) -> list[bytes]:
        """The queue's records as a consumer gets them that asks for 32 at a time and goes where the answer leads it.

        Where an entry leads nowhere, one answer can skip what a request for one message at a time would not.  most: up to how
        many offsets from the queue's minimum on.  ends: its minimum and maximum, of a queue that the broker does not list.
        """
        least, end = ends or self.queues()[topic, queue_id][:2]
        end = min(end, least + most)
        reply, found = _Reader(self._harness.read(topic, queue_id, max(least, 0), end, 32)), []
        while not reply.done:
            reply.take(">q")
            reply.text()
            _, buffers = reply.take(">qi")
            found += [reply.block() for _ in range(buffers)]
        return found

    def look_up(self, messages: Sequence[Message]) -> tuple[int, list[tuple[str, str, int]]]:
        """(how many keys of these messages queryMessage finds them by, those by which it does not)."""
        asked = [(m.record.topic, key, m.phy_offset) for m in messages for key in m.keys]
        distinct = sorted({(topic, key) for topic, key, _ in asked})
        found = dict(zip(distinct, self.query(distinct), strict=True))
        misses = [ask for ask in asked if ask[2] not in found[ask[:2]]]
        return len(asked) - len(misses), misses

    def query(self, questions: Sequence[tuple[str, str]]) -> list[set[int]]:
        """queryMessage for each (topic, key): the physical offsets of what it answers with."""
        packed = struct.pack(">i", len(questions)) + b"".join(_text(topic) + _text(key) for topic, key in questions)
        reply = _Reader(self._harness.query(packed, ANSWERS_AT_MOST))
        found = []
        for _ in questions:
            (count,) = reply.take(">i")
            found.append({reply.take(">q")[0] for _ in range(count)})
        return found

    # ---- its state -------------------------------------------------------------------------------------------------

    def queues(self) -> dict[tuple[str, int], tuple[int, int, int]]:
        """(topic, queue id) -> (min offset, max offset, max physical offset) of every queue that it has in memory, sorted."""
        found = {}
        for topic in (table := self.java.getConsumeQueueTable()):
            for queue_id in (of_topic := table[topic]):
                queue = of_topic[queue_id]
                numbers = queue.getMinOffsetInQueue(), queue.getMaxOffsetInQueue(), queue.getMaxPhysicOffset()
                found[str(topic), int(queue_id)] = numbers
        return dict(sorted(found.items()))

    def state(self) -> dict[str, Any]:
        """As expected.json of a golden case tells a moment: min/maxPhyOffset, commitLogFiles, queues, indexFiles in short."""
        files = self.field(self.field(self.java.getCommitLog(), "mappedFileQueue"), "mappedFiles")
        headers = [self.field(file, "indexHeader") for file in self.field(self.field(self.java, "indexService"), "indexFileList")]
        return {
            "minPhyOffset": self.java.getMinPhyOffset(),
            "maxPhyOffset": self.java.getMaxPhyOffset(),
            "commitLogFiles": [{"name": Path(f.getFileName()).name, "wrotePosition": f.getWrotePosition()} for f in files],
            "queues": self.queues(),
            "indexFiles": [
                {"beginPhyOffset": h.getBeginPhyOffset(), "endPhyOffset": h.getEndPhyOffset(), "indexCount": h.getIndexCount()}
                for h in headers
            ],
        }


def _messages_in(record: bytes) -> int:
    """How many queue offsets a record stands for: more than one for a batch in a topic of type BatchCQ."""
    if int.from_bytes(record[36:40], "big") & 0x80:
        with suppress(ValueError, struct.error):
            return int(decode(record, 0).properties.get("INNER_NUM", "1"))
    return 1


class _Reader:
    """Reads what Java's DataOutputStream wrote."""

    def __init__(self, data: bytes):
        self._data, self._at = memoryview(bytes(data)), 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._data)

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def text(self) -> str:
        (size,) = self.take(">H")
        self._at += size
        return bytes(self._data[self._at - size : self._at]).decode()

    def block(self) -> bytes:
        (size,) = self.take(">i")
        self._at += size
        return bytes(self._data[self._at - size : self._at])

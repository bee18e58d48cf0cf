"""A broker's load() and start() on a copied store, without a broker (recovery.md)."""

import json
import struct
from contextlib import suppress
from pathlib import Path

from tests.support.second_witness.files import Disk, FileQueue, NotMade, Refused
from tests.support.second_witness.index import Index
from tests.support.second_witness.java import I16, I32, I64, parse_number, split_dropping_tail
from tests.support.second_witness.queues import BatchConsumeQueue, ConsumeQueue
from tests.support.second_witness.record import SCHEDULE_TOPIC, V1, V2, check
from tests.support.second_witness.rules import Config, Rules


class Broker:
    def __init__(self, store, release, config_text):
        self.root = Path(store)
        self.rules, self.conf = Rules(release), Config(config_text)
        self.disk = Disk(self.root)
        self.log = FileQueue(self.root / "commitlog", self.conf.mappedFileSizeCommitLog, self.rules, self.disk)
        self.index = Index(self.root / "index", self.conf, self.rules, self.disk)
        self.queues = {}
        self.start_segment = self.stop_reason = None
        self.queues_stopped = False  # RunningFlags.makeLogicsQueueError
        self.batch_topics = self.find_batch_topics()

    def find_batch_topics(self):
        """config/topics.json says which topics are of type BatchCQ; a copy without it shows it by the directory only."""
        if not self.rules.at_least("5.0.0"):
            return set()
        table, folder = self.root / "config" / "topics.json", self.root / "batchconsumequeue"
        if table.exists():
            topics = json.loads(table.read_text())["topicConfigTable"]
            return {name for name, t in topics.items() if (t.get("attributes") or {}).get("queue.type") == "BatchCQ"}
        return {p.name for p in folder.iterdir()} if folder.is_dir() else set()

    # ---------------------------------------------------------------- load
    def load(self):
        clean = not (self.root / "abort").exists()
        self.exit = "clean" if clean else "unclean"
        self.log.load()
        self.load_queues()
        self.read_checkpoint()
        index_refused = None
        try:
            self.index.load(clean, self.index_time)
        except Refused as why:
            index_refused = why if self.rules.at_least("5.1.0") else None
        # 4.9.2-4.9.8 load the delay levels after recovery only
        late = self.rules.at_least("4.9.2") and not self.rules.at_least("5.0.0")
        self.delays = {} if late else self.conf.delays
        for q in self.all_queues():
            q.recover()
            if self.conf.enableConsumeQueueExt and q.queue.files:
                self.recover_ext(q)
        self.recover_log(clean)
        self.recover_table()
        self.delays = self.conf.delays
        if late:  # correctDelayOffset looks up the queue of every level
            for level in self.delays:
                self.find_queue(SCHEDULE_TOPIC, level - 1)
        if index_refused:
            raise index_refused

    def load_queues(self):
        for kind, cls in (("consumequeue", ConsumeQueue), ("batchconsumequeue", BatchConsumeQueue)):
            folder = self.root / kind
            if cls is BatchConsumeQueue and not self.rules.at_least("5.0.0") or not folder.is_dir():
                continue
            for topic in sorted(folder.iterdir()):
                for child in sorted(topic.iterdir()) if topic.is_dir() else []:
                    queue_id = parse_number(child.name, 32)
                    if queue_id is None:
                        continue
                    if self.rules.at_least("5.0.0") and (cls is BatchConsumeQueue) != (topic.name in self.batch_topics):
                        raise Refused(f"{self.disk.relative(topic)}: not the topic's queue type")
                    q = self.queues[topic.name, queue_id] = cls(topic.name, queue_id, child, self.conf, self.rules, self.disk)
                    q.load()
                    if self.conf.enableConsumeQueueExt and cls is ConsumeQueue:
                        q.ext = FileQueue(
                            self.root / "consumequeue_ext" / topic.name / child.name,
                            self.conf.mappedFileSizeConsumeQueueExt,
                            self.rules,
                            self.disk,
                        )
                        q.ext.load()

    def recover_ext(self, q):
        """Only what can fail: a unit that leads past its file's end throws."""
        for f in q.ext.files if q.ext else []:
            pos = 0
            while True:
                if pos + 2 > f.size:
                    raise Refused(f"{self.disk.relative(f.path)}: no room for a unit's size at {pos}")
                size = I16.unpack_from(f.data, pos)[0]
                if size <= 0:
                    break
                pos += size
                if pos > f.size:
                    raise Refused(f"{self.disk.relative(f.path)}: a unit leads past the end")

    def read_checkpoint(self):
        path = self.root / "checkpoint"
        data = (path.read_bytes() if path.exists() else b"").ljust(4096, b"\0")
        self.physic_time, self.logics_time, self.index_time, _, self.confirm_phy, self.logics_phy = struct.unpack_from(
            ">6q", data
        )
        self.min_time = max(0, min(self.physic_time, self.logics_time) - 3000)

    def all_queues(self):
        return list(self.queues.values())

    def find_queue(self, topic, queue_id):
        if (topic, queue_id) not in self.queues:
            cls = BatchConsumeQueue if topic in self.batch_topics else ConsumeQueue
            self.queues[topic, queue_id] = cls(
                topic, queue_id, self.root / cls.kind / topic / str(queue_id), self.conf, self.rules, self.disk
            )
        return self.queues[topic, queue_id]

    def max_cq_phy(self):
        return max([q.max_phy for q in self.all_queues()] + [-1])

    def recover_table(self):
        for q in self.all_queues():
            q.correct_min(self.log.min_offset)

    # ---------------------------------------------------------------- CommitLog
    def check(self, f, pos):
        return check(
            f.data,
            pos,
            f.size,
            self.rules,
            self.conf,
            self.conf.checkCRCOnRecover,
            self.conf.duplicationEnable,
            delays=self.delays,
        )

    def recover_log(self, clean):
        files, m = self.log.files, self.max_cq_phy()
        accelerated = not clean and self.rules.at_least("5.5.0") and self.conf.enableAcceleratedRecovery
        if accelerated and self.logics_phy <= 0 < self.physic_time:
            raise Refused("checkpoint: accelerated recovery without logicsPhysicalOffset")
        if not files:
            for q in self.all_queues():
                q.destroy()
            return
        rules = self.rules
        i = self.start_file(clean, m)
        self.start_segment = files[i].name
        f, pos = files[i], 0
        if accelerated:
            pos = max(0, self.logics_phy - f.start)
            if pos > f.size:
                raise Refused(f"commitlog/{f.name}: accelerated start beyond the file")
        while True:
            r = self.check(f, pos)
            if not r.ok:
                self.stop_reason = r.why
                break
            if r.size > 0:
                if (
                    not clean
                    and rules.at_least("5.5.0")
                    and self.conf.checkCommitLogOffsetOnRecover
                    and not f.start <= r.phy_offset <= f.start + f.size
                ):
                    self.stop_reason = "physicalOffset outside of the file"
                    break
                pos += r.size
                if rules.at_least("5.3.2") and r.phy_offset > m if clean else self.confirmed(r):
                    self.dispatch(r)
            else:
                i += 1
                if i == len(files):
                    self.stop_reason = "end of the last file"
                    break
                f, pos = files[i], 0
        end = f.start + pos
        if rules.at_least("5.3.4"):
            m = self.max_cq_phy()
        if m >= end:
            for q in self.all_queues():
                q.truncate_logic(end)
        self.log.truncate(end)

    def confirmed(self, r):
        if self.conf.duplicationEnable or self.conf.enableControllerMode and self.rules.at_least("5.1.1"):
            if self.rules.at_least("5.1.1"):
                return r.phy_offset + r.size <= self.confirm_phy
            return r.phy_offset < -1  # confirmOffset is -1 in a process that just started
        return True

    def start_file(self, clean, m):
        files, rules = self.log.files, self.rules
        if rules.at_least("5.3.4"):
            return self.start_file_534(clean, m)
        if clean:
            if not rules.at_least("5.3.2"):
                return max(0, len(files) - 3)
            i = len(files) - 1
            while i > 0 and files[i].start > m:
                i -= 1
            return i
        for i in reversed(range(len(files))):
            if self.matched_by_time(files[i]):
                return i
        return 0

    def matched_by_time(self, f):
        magic = I32.unpack_from(f.data, 4)[0]
        if magic != V1 and not (magic == V2 and self.rules.at_least("5.1.0")):
            return False
        flag = I32.unpack_from(f.data, 36)[0]
        time = I64.unpack_from(f.data, 48 + (20 if flag & 0x10 else 8))[0]
        limit = self.min_time
        if self.conf.messageIndexEnable and self.conf.messageIndexSafe:
            limit = min(limit, self.index_time)
        return time != 0 and time <= limit

    def start_file_534(self, clean, m):
        files = self.log.files
        most = self.conf.commitLogRecoverMaxNum if self.rules.at_least("5.4.0") else len(files)
        for looked, i in enumerate(reversed(range(len(files))), 1):
            if clean and i == 0:
                return 0
            if self.matched_by_record(files[i], clean, m) or looked >= most:
                return i
        return 0

    def matched_by_record(self, f, clean, m):
        r = self.check(f, 0)
        if not r.ok or r.store_time == 0:
            return False
        if self.conf.messageIndexEnable and self.conf.messageIndexSafe and r.store_time > self.index_time:
            return False
        if clean:
            return r.phy_offset <= m
        if self.rules.at_least("5.5.0"):
            return r.phy_offset <= self.logics_phy if self.logics_phy > 0 else r.store_time <= self.logics_time
        return r.store_time <= self.min_time

    # ---------------------------------------------------------------- dispatch
    def dispatch(self, r):
        if r.in_queue:
            q = self.find_queue(r.topic, r.queue_id)
            if not self.queues_stopped:
                self.put_into_queues(q, r)
        if self.conf.messageIndexEnable:
            self.index.build(r)

    def put_into_queues(self, q, r):
        try:
            q.put(r)
        except NotMade:
            self.queues_stopped = True
            return
        if isinstance(q, ConsumeQueue) and not isinstance(q, BatchConsumeQueue):
            self.dispatch_lmq(r)

    def dispatch_lmq(self, r):
        rules, names, offsets = self.rules, r.props.get("INNER_MULTI_DISPATCH", ""), r.props.get("INNER_MULTI_QUEUE_OFFSET", "")
        if not (rules.at_least("4.9.3") and self.conf.enableMultiDispatch and names.strip() and offsets.strip()):
            return
        if r.topic.startswith("%RETRY%") and rules.at_least("5.1.1"):
            return
        system = r.topic.startswith("rmq_sys_") if rules.at_least("5.2.0") else r.topic == "rmq_sys_wheel_timer"
        if rules.at_least("5.1.2") and (system or r.topic == SCHEDULE_TOPIC):
            return
        names, offsets = split_dropping_tail(names, ","), split_dropping_tail(offsets, ",")
        if len(names) != len(offsets):
            return
        for name, offset in zip(names, offsets, strict=True):
            if "/" in name and rules.at_least("5.1.2"):
                continue
            q = parse_number(offset, 64)
            if q is None:
                raise Refused(f"commitlog at {r.phy_offset}: LMQ offset {offset!r}")
            queue_id = 0 if self.conf.enableLmq and name.startswith("%LMQ%") else r.queue_id
            with suppress(NotMade):
                self.find_queue(name, queue_id).put_entry(r.phy_offset, r.size, r.tags_code, q)

    # ---------------------------------------------------------------- start
    def start(self):
        if self.rules.at_least("5.0.0") and not self.conf.recheckReputOffsetFromCq:
            return
        at = max(self.log.min_offset, 0, self.max_cq_phy())
        while at < self.log.max_offset and not self.conf.duplicationEnable:
            f = self.log.find(at)
            if f is None or at - f.start >= f.wrote:
                break  # start() hangs here
            at = self.reput(f, at)
        if not self.rules.at_least("5.0.0"):
            self.recover_table()

    def reput(self, f, at):
        """One buffer: from `at` to the file's written end. Gives the next offset."""
        pos, read, whole = at - f.start, 0, f.wrote - (at - f.start)
        while read < whole:
            r = check(f.data, pos, f.wrote, self.rules, self.conf, crc=False, body_wanted=False, delays=self.delays)
            if r.ok and r.size > 0:
                self.dispatch(r)
                at, read, pos = at + r.size, read + r.size, pos + r.size
            elif r.ok:
                return f.start + f.size
            elif r.size > 0:  # the buffer goes on where the fields ended
                at, pos = at + r.size, r.parsed_to
            else:
                return at + whole - read
        return at

    # ---------------------------------------------------------------- answers
    def state(self):
        return {
            "commitlog": [{"file": f.name, "wrote": f.wrote} for f in self.log.files],
            "queues": [
                {"topic": t, "queue_id": i, "min_offset": q.min_offset, "max_offset": q.max_offset, "max_phy_offset": q.max_phy}
                for (t, i), q in sorted(self.queues.items())
            ],
            "index": [
                {"begin_phy_offset": f.begin_phy, "end_phy_offset": f.end_phy, "index_count": f.stored_count}
                for f in self.index.files
            ],
        }

    def entries(self):
        for _, q in sorted(self.queues.items()):
            yield from q.entries()
        yield from self.index.entries()


def run(store, release, config_text):
    """(plan's broker section, ConsumeQueue and index entries after load)"""
    b = Broker(store, release, config_text)
    plan = {"starts": True, "refusal": None}
    try:
        b.load()
    except Refused as why:
        return {"starts": False, "refusal": str(why), "exit": getattr(b, "exit", None)}, None
    plan.update(
        exit=b.exit,
        start_segment=b.start_segment,
        stop_reason=b.stop_reason,
        min_phy_offset=b.log.min_offset,
        truncate_at=b.log.max_offset,
        deleted_files=sorted(b.disk.before - b.disk.now),
        after_load=b.state(),
    )
    entries = list(b.entries())
    try:
        b.start()
    except Refused:  # the dispatching thread throws at this record again and again: start() never catches up
        pass
    plan["after_dispatch"] = b.state()
    return plan, entries

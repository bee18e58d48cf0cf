"""ConsumeQueue and BatchConsumeQueue (recovery.md section 7)."""

import struct

from tests.support.second_witness.files import FileQueue, Refused

CQ = struct.Struct(">qiq")
BATCH = struct.Struct(">qiqqqhii")


class ConsumeQueue:
    unit = 20
    kind = "consumequeue"

    def __init__(self, topic, queue_id, folder, conf, rules, disk):
        self.topic, self.queue_id, self.conf, self.rules = topic, queue_id, conf, rules
        self.queue = FileQueue(folder, self.file_size(conf), rules, disk)
        self.max_phy = -1
        self.min_logic = 0
        self.ext = None

    @staticmethod
    def file_size(conf):
        return conf.mappedFileSizeConsumeQueue

    def load(self):
        self.queue.load()

    def read(self, f, at):
        """(valid, offset, physical end that a kept entry stands for)"""
        offset, size, _ = CQ.unpack_from(f.data, at)
        return offset >= 0 and size > 0, offset, offset + size

    def recover(self):
        files = self.queue.files
        if not files:
            return
        i = max(0, len(files) - 3)
        while True:
            f, pos = files[i], 0
            while pos + self.unit <= f.size:
                valid, _, phy = self.read(f, pos)
                if not valid:
                    break
                pos += self.unit
                self.max_phy = phy
            if pos != f.size or i + 1 == len(files):
                break
            i += 1
        self.queue.truncate(f.start + pos)
        self.revise()

    def revise(self):
        pass

    def truncate_logic(self, end):
        self.max_phy = self.phy_when_empty(end)
        while self.queue.files:
            f = self.queue.last
            f.wrote = 0
            valid, offset, phy = self.read(f, 0)
            if offset >= end:
                self.queue.delete(f)
                continue
            while True:  # the first entry is kept untested
                f.wrote += self.unit
                self.max_phy = phy
                if f.full:
                    break
                valid, offset, phy = self.read(f, f.wrote)
                if not valid or offset >= end:
                    break
            break
        self.revise()

    @staticmethod
    def phy_when_empty(end):
        return end

    def put(self, r):
        self.put_entry(r.phy_offset, r.size, r.tags_code, r.queue_offset)

    def put_entry(self, offset, size, tags_code, q):
        if offset + size <= self.max_phy:
            return
        expected = q * self.unit
        f, first = self.queue.last_for_append(expected)
        if first and q != 0 and f.wrote == 0:
            self.min_logic = expected
            while f.wrote < expected % f.size:
                CQ.pack_into(f.data, f.wrote, 0, 0x7FFFFFFF, 0)
                f.wrote += self.unit
        if q != 0 and expected < f.start + f.wrote:
            return
        self.max_phy = offset + size
        CQ.pack_into(f.data, f.wrote, offset, size, tags_code)
        f.wrote += self.unit

    def destroy(self):
        self.queue.destroy()
        self.max_phy, self.min_logic = -1, 0

    def phy_at(self, f, at):
        return CQ.unpack_from(f.data, at)[0]

    def correct_min(self, min_phy):
        if not self.rules.at_least("5.0.0"):
            f = self.queue.files[0] if self.queue.files else None
            for at in range(0, f.wrote if f else 0, self.unit):
                if self.phy_at(f, at) >= min_phy:
                    self.min_logic = f.start + at
                    break
            return
        if not self.queue.files and self.rules.at_least("5.5.1"):
            self.min_logic, self.max_phy = 0, -1
        if self.min_logic >= self.queue.max_offset or not self.queue.files:
            return
        last, first = self.queue.last, self.queue.files[0]
        if last.wrote < self.unit:
            if not self.rules.at_least("5.5.0"):
                raise Refused(f"{self.queue.disk.relative(last.path)}: no entry in the last file, correctMinOffset throws")
        elif self.phy_at(last, last.wrote - self.unit) < min_phy:
            self.min_logic = last.start + last.wrote
            return
        start = self.min_logic - first.start
        intact = start >= 0
        start = max(start, 0)
        if start >= first.wrote:
            return
        if intact and self.phy_at(first, start) >= min_phy:
            return
        low, high = 0, first.wrote - start - self.unit
        while high - low > self.unit:
            mid = (low + high) // 2 // self.unit * self.unit
            phy = self.phy_at(first, start + mid)
            if phy > min_phy:
                high = mid
            elif phy == min_phy:
                low = high = mid
            else:
                low = mid
        for at in range(low, high + 1, self.unit):
            if self.phy_at(first, start + at) >= min_phy:
                self.min_logic = first.start + start + at
                break

    @property
    def min_offset(self):
        return self.min_logic // self.unit

    @property
    def max_offset(self):
        return self.queue.max_offset // self.unit

    def entries(self):
        for f in self.queue.files:
            for at in range(0, f.wrote, self.unit):
                p, s, c = CQ.unpack_from(f.data, at)
                yield {"t": self.topic, "q": self.queue_id, "i": (f.start + at) // self.unit, "p": p, "s": s, "c": c}


class BatchConsumeQueue(ConsumeQueue):
    unit = 46
    kind = "batchconsumequeue"

    def __init__(self, *args):
        super().__init__(*args)
        self.min_offset_, self.max_offset_ = -1, 0

    @staticmethod
    def file_size(conf):
        return conf.mapperFileSizeBatchConsumeQueue

    @staticmethod
    def phy_when_empty(end):
        return end - 1

    def read(self, f, at):
        offset, size, _, _, base, count, _, _ = BATCH.unpack_from(f.data, at)
        return offset >= 0 and size > 0 and base >= 0 and count > 0, offset, offset

    def base_and_count(self, f, at):
        return BATCH.unpack_from(f.data, at)[4:6]

    def revise(self):
        files = self.queue.files
        self.revise_min()
        self.max_offset_ = 0
        for f in files[-1:-3:-1]:
            if f.wrote >= self.unit:
                base, count = self.base_and_count(f, f.wrote - self.unit)
                self.max_offset_ = base + count
                break

    def revise_min(self):
        files = self.queue.files
        if not files:
            self.min_offset_, self.max_offset_ = -1, 0
        elif files[0].wrote < self.unit:
            self.min_offset_ = -1
        else:
            self.min_offset_ = self.base_and_count(files[0], 0)[0]

    def put(self, r):
        if r.batch_base < 0 or r.batch_size < 0 or r.phy_offset <= self.max_phy:
            return
        f, _ = self.queue.last_for_append(self.queue.max_offset)
        BATCH.pack_into(f.data, f.wrote, r.phy_offset, r.size, r.tags_code, r.store_time, r.batch_base, r.batch_size, -1, 0)
        f.wrote += self.unit
        self.max_phy, self.max_offset_ = r.phy_offset, r.batch_base + r.batch_size
        if self.min_offset_ == -1 and f is self.queue.files[0]:
            self.revise_min()

    def destroy(self):
        super().destroy()
        self.min_offset_, self.max_offset_ = -1, 0

    def correct_min(self, min_phy):
        self.revise_min()
        f = self.queue.files[0] if self.queue.files else None
        for at in range(0, f.wrote if f else 0, self.unit):
            if self.phy_at(f, at) >= min_phy:
                break
            base, count = self.base_and_count(f, at)
            self.min_offset_ = base + count

    @property
    def min_offset(self):
        return self.min_offset_

    @property
    def max_offset(self):
        return self.max_offset_

    def entries(self):
        for f in self.queue.files:
            for at in range(0, f.wrote, self.unit):
                p, s, c, st, base, n, _, _ = BATCH.unpack_from(f.data, at)
                yield {
                    "t": self.topic,
                    "q": self.queue_id,
                    "b": (f.start + at) // self.unit,
                    "p": p,
                    "s": s,
                    "c": c,
                    "st": st,
                    "i": base,
                    "n": n,
                }

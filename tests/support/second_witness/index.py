"""Index files (formats.md section 6, recovery.md section 8)."""

import mmap
import struct

from tests.support.second_witness.files import Refused, private_map
from tests.support.second_witness.java import divide, parse_number, string_hash

HEADER = struct.Struct(">qqqqii")  # begin, end time; begin, end offset; slots used, next entry number
ENTRY = struct.Struct(">iqii")


class IndexFile:
    def __init__(self, path, data, slots, most):
        self.path, self.data, self.slots, self.most = path, data, slots, most
        self.begin_time, self.end_time, self.begin_phy, self.end_phy, self.slot_count, self.stored_count = HEADER.unpack_from(
            data, 0
        )
        self.count = max(self.stored_count, 1)

    @property
    def full(self):
        return self.count >= self.most

    def put(self, key, phy, time):
        if self.full:
            return False
        h = abs(string_hash(key))
        h = 0 if h > 0x7FFFFFFF else h
        at = 40 + 4 * (h % self.slots)
        prev = struct.unpack_from(">i", self.data, at)[0]
        if prev <= 0 or prev > self.count:
            prev = 0
        diff = divide(time - self.begin_time, 1000)
        diff = 0 if self.begin_time <= 0 or diff < 0 else min(diff, 0x7FFFFFFF)
        ENTRY.pack_into(self.data, 40 + 4 * self.slots + 20 * self.count, h, phy, diff, prev)
        struct.pack_into(">i", self.data, at, self.count)
        if self.count <= 1:
            self.begin_phy, self.begin_time = phy, time
        if prev == 0:
            self.slot_count += 1
        self.count += 1
        self.stored_count = self.count
        self.end_phy, self.end_time = phy, time
        return True


class Index:
    def __init__(self, folder, conf, rules, disk):
        self.folder, self.conf, self.rules, self.disk = folder, conf, rules, disk
        self.size = 40 + 4 * conf.maxHashSlotNum + 20 * conf.maxIndexNum
        self.files = []

    def load(self, clean, index_time):
        for path in sorted(self.folder.iterdir(), key=lambda p: p.name) if self.folder.is_dir() else []:
            if parse_number(path.name, 64) is None:
                continue
            if path.is_dir():
                raise Refused(f"{self.disk.relative(path)}: a directory")
            f = IndexFile(path, private_map(path, self.size), self.conf.maxHashSlotNum, self.conf.maxIndexNum)
            if not clean and f.end_time > index_time:
                self.disk.delete(path)
            else:
                self.files.append(f)

    def current(self):
        last = self.files[-1] if self.files else None
        if last and not last.full:
            return last
        f = IndexFile(None, mmap.mmap(-1, self.size), self.conf.maxHashSlotNum, self.conf.maxIndexNum)
        if last and last.end_phy > 0:
            f.begin_phy = f.end_phy = last.end_phy
        if last and last.end_time > 0:
            f.begin_time = f.end_time = last.end_time
        self.files.append(f)
        return f

    def build(self, r):
        f = self.current()
        if r.phy_offset < f.end_phy or r.sys_flag & 0xC == 0xC:
            return
        keys = [r.props["UNIQ_KEY"]] if "UNIQ_KEY" in r.props else []
        keys += [k for k in r.props.get("KEYS", "").split(" ") if k]
        if self.rules.at_least("5.4.0") and r.props.get("TAGS"):
            keys.append("T#" + r.props["TAGS"])
        for key in keys:
            if not f.put(f"{r.topic}#{key}", r.phy_offset, r.store_time):
                f = self.current()
                f.put(f"{r.topic}#{key}", r.phy_offset, r.store_time)

    def entries(self):
        for x, f in enumerate(self.files):
            for i in range(1, f.stored_count):
                at = 40 + 4 * f.slots + 20 * i
                if at + 20 > len(f.data):
                    break
                h, p, d, prev = ENTRY.unpack_from(f.data, at)
                yield {"x": x, "i": i, "h": h, "p": p, "d": d, "prev": prev}

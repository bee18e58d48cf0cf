"""What a started broker does to a store by itself, read from the store's files, one step after the other.

`Day(...)` reads the records; `retention`, `timers`, `delays`, `transactions` give numbers as `first_day` of plan.json has them.
Left out: DLedger, what a start cuts of a store with queues in RocksDB, deletes of timers, and what is delivered a second time.
"""

import datetime
import json
import re
import struct
import zoneinfo
from collections import namedtuple
from math import ceil
from pathlib import Path

from tests.support.second_witness.broker import run
from tests.support.second_witness.java import parse_number
from tests.support.second_witness.record import SCHEDULE_TOPIC, check
from tests.support.second_witness.rules import Config, Rules

HALF, OPERATION, TIMER = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "rmq_sys_wheel_timer"
HOUR = 3_600_000
BACK_SLOTS, UNIT_BYTES = 604_800 - 60, 52

LogFile = namedtuple("LogFile", "path size modified")
Stored = namedtuple("Stored", "phy_offset topic queue_id queue_offset born body props tags_code")


class Day:
    """at: ms of the start. used: percent of the disk. size: its bytes, None if they are not known."""

    def __init__(self, store, release, conf_text, at, zone="UTC", used=None, size=None):
        self.root, self.rules, self.conf = Path(store), Rules(release), Config(conf_text)
        self.at, self.zone, self.used, self.size = at, zoneinfo.ZoneInfo(zone), used, size
        self.files, self.records = [], []
        rocksdb = "rocksdb" in self.conf.given.get("storeType", "").lower()
        end = None if rocksdb else run(store, release, conf_text)[0]["truncate_at"]
        for path in sorted((self.root / "commitlog").iterdir()):
            found = [r for r in self.records_of(path.read_bytes(), int(path.name)) if end is None or r.phy_offset < end]
            if found:
                stat = path.stat()
                self.files.append(LogFile(f"commitlog/{path.name}", stat.st_size, stat.st_mtime_ns // 1_000_000))
            self.records += found

    def setting(self, key, default):
        number = parse_number(self.conf.given.get(key), 64)
        return default if number is None else number

    def records_of(self, data, start):
        at = 0
        while True:
            r = check(data, at, len(data), self.rules, self.conf, True)
            if not r.ok or r.size <= 0:
                return
            hosts = 20 if r.sys_flag & 0x10 else 8, 20 if r.sys_flag & 0x20 else 8
            born = struct.unpack_from(">q", data, at + 40)[0]
            body_at = at + 48 + hosts[0] + 8 + hosts[1] + 4 + 8
            length = struct.unpack_from(">i", data, body_at)[0]
            body = data[body_at + 4 : body_at + 4 + length]
            yield Stored(start + at, r.topic, r.queue_id, r.queue_offset, born, body, r.props, r.tags_code)
            at += r.size

    def queue(self, topic, queue_id=0):
        return sorted((r for r in self.records if (r.topic, r.queue_id) == (topic, queue_id)), key=lambda r: r.queue_offset)

    # ---- (a) retention

    def retention(self):
        hours = {int(part) for part in self.conf.given.get("deleteWhen", "04").split(";")}
        gone = self.cleaned(self.files, self.at + 60_000, self.hour(self.at) in hours, self.used or 0, self.size)
        left = self.files[len(gone) :]
        freed = sum(f.size for f in gone)
        used = self.used or 0
        if self.size:
            used -= 100 * freed / self.size
        next_hour = self.at - self.at % HOUR + HOUR
        while self.hour(next_hour) not in hours:
            next_hour += HOUR
        in_hour = self.cleaned(left, next_hour + HOUR - 10_000, True, used, self.size)
        full = self.cleaned(self.files, self.at + 60_000, self.hour(self.at) in hours, 100, None)
        return {
            "at_once": [f.path for f in gone],
            "in_delete_when": [f.path for f in in_hour],
            "if_disk_full": [f.path for f in full[len(gone) :]],
        }

    def hour(self, ms):
        return datetime.datetime.fromtimestamp(ms / 1000, self.zone).hour

    def cleaned(self, files, now, is_time, used, size):
        """One round each ten seconds, until one deletes nothing."""
        new = self.rules.at_least("5.0.0")
        reserved = self.setting("fileReservedTime", 72) * HOUR
        most = max(1, self.setting("deleteFileBatchMax", 10)) if new else 10
        forced_by = min(85, max(30, self.setting("diskSpaceCleanForciblyRatio", 85))) if new else 85
        tolerated = min(95, max(10, self.setting("diskMaxUsedSpaceRatio", 75)))
        may_force = self.conf.given.get("cleanFileForciblyEnable", "true").lower() == "true"
        left, gone = list(files), []
        while True:
            percent = ceil(round(used, 6)) if self.rules.at_least("4.9.2") else used
            at_once = percent > forced_by
            space = percent > tolerated or new and at_once
            count = 0
            if is_time or space:
                while len(left) > 1 and count < most and (now >= left[0].modified + reserved or at_once and may_force):
                    count += 1
                    used -= 100 * left[0].size / size if size else 0
                    gone.append(left.pop(0))
            if not count:
                return gone
            now += 10_000

    # ---- (c) timers

    def timers(self):
        precision = self.setting("timerPrecisionMs", 1000)
        stored, _, in_wheel = struct.unpack_from(">3q", (self.root / "config" / "timercheck").read_bytes())
        read = max(stored, self.at // precision * precision - BACK_SLOTS * precision)
        by_place = {r.phy_offset: r for r in self.records}
        copies = {(r.props.get("UNIQ_KEY"), r.props["TIMER_OUT_MS"]) for r in self.records if "TIMER_DEQUEUE_MS" in r.props}
        found = {"never": 0, "uncertain": 0, "at_once": 0, "later": 0}
        times = []
        for time, place in self.units():
            r = by_place.get(place)
            if r is None or r.queue_offset >= in_wheel:
                continue
            slot = time // precision * precision
            if slot >= stored and (r.props.get("UNIQ_KEY"), r.props["TIMER_OUT_MS"]) not in copies:
                found["never" if slot < read else "at_once" if slot <= self.at else "later"] += 1
                times.append(slot)
        for r in self.queue(TIMER):
            if r.queue_offset >= in_wheel:
                due = int(r.props["TIMER_OUT_MS"])
                times += [due // precision * precision] if due >= stored else []
                found["uncertain" if due < read else "at_once" if due <= self.at else "later"] += 1
        return {**found, "start_before_ms": min(times) + BACK_SLOTS * precision if times else None}

    def units(self):
        """(time of the slot in ms, physical offset of the message) of each unit of the timer log."""
        for path in sorted((self.root / "timerlog").iterdir()):
            data = path.read_bytes()
            for at in range(0, len(data) - UNIT_BYTES + 1, UNIT_BYTES):
                size, _, _, written, delay, place = struct.unpack_from(">iqiqiq", data, at)
                if size != UNIT_BYTES:
                    break
                yield written + delay, place

    # ---- (d) delay levels

    def delays(self):
        offsets = self.offset_table("delayOffset.json")
        found = {"at_once": 0, "later": 0, "left_out": 0, "stuck_levels": []}
        for level, gap in self.conf.delays.items():
            waiting = [r for r in self.queue(SCHEDULE_TOPIC, level - 1) if r.queue_offset >= offsets.get(str(level), 0)]
            while waiting:
                due = waiting[0].tags_code
                if self.at < due <= self.at + gap:
                    break
                if waiting[0].body or not self.rules.at_least("5.0.0"):
                    found["at_once"] += 1
                elif not self.rules.at_least("5.3.3"):
                    found["left_out"] += 1
                else:
                    found["stuck_levels"].append(level)
                    break
                waiting.pop(0)
            found["later"] += len(waiting)
        return found

    def offset_table(self, name):
        path = self.root / "config" / name
        text = path.read_text() if path.exists() else '{"offsetTable": {}}'
        return json.loads(re.sub(r"([{,]\s*)(\d+)\s*:", r'\1"\2":', text))["offsetTable"]  # brokers write numbers without quotes

    # ---- (e) transactions

    def transactions(self):
        halves, operations = self.queue(HALF), self.queue(OPERATION)
        table = self.offset_table("consumerOffset.json")
        start, at = (table.get(f"{topic}@CID_RMQ_SYS_TRANS", {}).get("0", 0) for topic in (HALF, OPERATION))
        halves = [r for r in halves if r.queue_offset >= start]
        first_check = self.setting("transactionCheckInterval", 30_000 if self.rules.at_least("5.1.1") else 60_000)
        now = self.at + first_check
        reserved, most = self.setting("fileReservedTime", 72) * HOUR, self.setting("transactionCheckMax", 15)
        timeout = self.setting("transactionTimeOut", 6000)
        everything = {n for r in operations if r.queue_offset >= at for n in self.decided(r)}
        done, ended, newest, moved = set(), False, 0, []

        def read_on():
            nonlocal at, ended, newest
            batch = [r for r in operations if at <= r.queue_offset < at + 32]
            ended, newest = not batch, max((r.queue_offset, r.born) for r in batch)[1] if batch else 0
            done.update(n for r in batch for n in self.decided(r))
            at += len(batch)

        read_on()
        for r in halves:
            age, times = now - r.born, parse_number(r.props.get("TRANSACTION_CHECK_TIMES"), 32)
            if r.queue_offset in done:
                continue
            if times is not None and times >= most or age > reserved:
                moved.append(r)
                continue
            immune = r.props.get("CHECK_IMMUNITY_TIME_IN_SECONDS")
            if immune is None and 0 <= age < timeout:
                break
            if immune is not None and age < (parse_number(immune, 64) or 0) * 1000:
                continue
            while not ended and r.queue_offset not in done and age >= 0 and newest - now <= timeout:
                read_on()
        numbers = {r.queue_offset for r in moved}
        still = [r for r in halves if r.queue_offset not in everything | numbers]
        return {"moved_at_first_check": len(moved), "open": len(still)}

    def decided(self, r):
        if r.props.get("TAGS") != "d":
            return []
        text = r.body.decode()
        parts = text.split(",") if self.rules.at_least("5.1.0") else [text]
        return [number for part in parts if (number := parse_number(part, 64)) is not None]

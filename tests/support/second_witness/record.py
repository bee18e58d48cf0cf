"""One CommitLog record: formats.md section 2, the checks of recovery.md section 3."""

import struct
import zlib
from dataclasses import dataclass, field

from tests.support.second_witness.java import I16, I32, I64, int32, parse_number, split_dropping_tail, string_hash

V1, V2, BLANK = -626843481, -626843477, -875286124
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"


@dataclass
class Record:
    """(size, ok) as the broker's DispatchRequest tells; the rest only where ok and size > 0."""

    size: int
    ok: bool
    why: str = ""
    parsed_to: int = 0  # where the broker's buffer stands afterwards
    topic: str = ""
    queue_id: int = 0
    queue_offset: int = 0
    phy_offset: int = 0
    sys_flag: int = 0
    store_time: int = 0
    tags_code: int = 0
    props: dict = field(default_factory=dict)
    batch_base: int = -1
    batch_size: int = 1

    @property
    def in_queue(self):
        return self.sys_flag & 0xC in (0, 8)


class Bad(Exception):
    pass


def parse_properties(text, rules):
    found = {}
    if rules.at_least("4.9.1"):
        i = 0
        while i < len(text):
            e = text.find("\x02", i)
            e = len(text) if e < 0 else e
            if e - i >= 3:
                k = text.find("\x01", i)
                if i < k < e - 1:
                    found[text[i:k]] = text[k + 1 : e]
            i = e + 1
    else:
        for item in split_dropping_tail(text, "\x02"):
            parts = split_dropping_tail(item, "\x01")
            if len(parts) == 2:
                found[parts[0]] = parts[1]
    return found


def check(buf, pos, limit, rules, conf, crc, dup=False, body_wanted=True, delays=None):
    """delays: the delay level table as it is at this moment ({} = not loaded yet)."""
    at = pos

    def take(n):
        nonlocal at
        if n < 0 or at + n > limit:
            raise Bad(f"{n} bytes wanted, {limit - at} left")
        at += n
        return at - n

    def int16():
        return I16.unpack_from(buf, take(2))[0]

    def int32_():
        return I32.unpack_from(buf, take(4))[0]

    def int64_():
        return I64.unpack_from(buf, take(8))[0]

    def part(n):
        if n < 0 or n > total:
            raise Bad(f"part of {n} bytes in a record of {total}")
        start = take(n)
        return buf[start : start + n]

    try:
        if rules.at_least("5.3.2") and limit - at <= 4:
            raise Bad("no room for a size")
        total = int32_()
        if rules.at_least("5.5.1") and total < 0:
            raise Bad("negative size")
        if rules.at_least("5.3.2") and limit - at < int32(total - 4):
            raise Bad("size beyond the file")
        magic = int32_()
        if magic == BLANK:
            return Record(0, True, "end of file", at)
        if magic != V1 and not (magic == V2 and rules.at_least("5.1.0")):
            raise Bad("magic")
        if total < 0:
            raise Bad("negative size")
        r = Record(total, True)
        body_crc = int32_()
        r.queue_id = int32_()
        int32_()
        r.queue_offset = int64_()
        r.phy_offset = int64_()
        r.sys_flag = int32_()
        int64_()
        part(20 if r.sys_flag & 0x10 else 8)
        r.store_time = int64_()
        part(20 if r.sys_flag & 0x20 else 8)
        int32_()
        int64_()
        body_len = int32_()
        prop_crc = conf.forceVerifyPropCRC and rules.at_least("5.2.0")
        if body_len > 0:
            if body_wanted:
                body = part(body_len)
                if crc and not prop_crc and zlib.crc32(body) & 0x7FFFFFFF != body_crc:
                    raise Bad("body CRC")
            else:
                take(body_len)
        topic_len = struct.unpack_from(">b", buf, take(1))[0] if magic == V1 else int16()
        r.topic = bytes(part(topic_len)).decode("utf-8", "replace")
        props_len = int16()
        if props_len > 0:
            r.props = parse_properties(bytes(part(props_len)).decode("utf-8", "replace"), rules)
            if dup and rules.at_least("5.0.0"):
                info = r.props.get("DUP_INFO")
                if info is None or len(split_dropping_tail(info, "_")) != 2:
                    raise Bad("DUP_INFO")
            tags = r.props.get("TAGS")
            if tags:
                r.tags_code = string_hash(tags)
            if r.topic == SCHEDULE_TOPIC and "DELAY" in r.props:
                level = parse_number(r.props["DELAY"], 32)
                if level is None:
                    raise Bad("DELAY")
                table = conf.delays if delays is None else delays
                level = min(level, max(table, default=0))
                if level > 0:
                    r.tags_code = r.store_time + table.get(level, 1000)
        if crc and prop_crc:
            text = r.props.get("__CRC32#")
            expected = -1
            if text is not None:
                expected = 0
                for c in reversed(text):
                    expected = int32(int32(expected * 10) + ord(c) - 48)
            if expected < 0 or expected == 0 and not rules.at_least("5.3.2"):
                raise Bad("no property CRC")
            if at - total < 0 or total < 20 or zlib.crc32(buf[at - total : at - 20]) & 0x7FFFFFFF != expected:
                raise Bad("property CRC")
        v6 = 12 * bool(r.sys_flag & 0x10) + 12 * bool(r.sys_flag & 0x20)
        length = (91 if magic == V1 else 92) + v6 + max(body_len, 0) + topic_len + max(props_len, 0)
        if total != length:
            return Record(total, False, "size does not match the fields", at)
        r.batch_base = r.queue_offset
        if rules.at_least("5.0.0") and "INNER_NUM" in r.props and "INNER_BASE" in r.props:
            r.batch_base, r.batch_size = parse_number(r.props["INNER_BASE"], 64), parse_number(r.props["INNER_NUM"], 16)
            if r.batch_base is None or r.batch_size is None:
                raise Bad("INNER_NUM, INNER_BASE")
        r.parsed_to = at
        return r
    except Bad as why:
        return Record(-1, False, str(why), at)

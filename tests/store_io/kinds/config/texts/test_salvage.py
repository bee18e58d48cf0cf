"""What the lenient reader keeps of a damaged file: each whole entry, nothing that the file never said."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from store_io.kinds.config.texts.salvage import LAYOUTS, UNKNOWN_TABLE, Salvaged, entries_of, salvaged
from tests.support.stores.config_texts import FILES, ConfigText, config_text
from tests.support.stores.random_config import TEXTS, VALUES, WHOLE

NO_TEXT = b"\0\xff\x01"  # in no text that a broker writes: what was read can be held against what was written
SIGNS = b'\0\xff#x"'  # what looks like a part of the file
OFFSETS = LAYOUTS["config/consumerOffset.json"]


def shown(path: str, found: Salvaged) -> dict[tuple[Any, ...], Any]:
    layouts = {layout.name: layout for layout in LAYOUTS[path]}
    return {(name, *keys): value for name, held in found.tables.items() for keys, value in entries_of(held, layouts[name])}


def damages(text: ConfigText, random: Random) -> Iterator[tuple[bytes, int, int]]:
    """(the damaged text, the range that was changed): torn, torn and filled up, overwritten by zeros or by garbage."""
    data, size = text.data, len(text.data)
    cut, start = random.randrange(size), random.randrange(size)
    end = min(size, start + random.choice([1, 2, 5, 9, 30, 200, 600]))
    yield data[:cut], cut, size
    yield data[:cut] + bytes(size - cut), cut, size
    yield data[:start] + bytes(end - start) + data[end:], start, end
    for signs in (NO_TEXT, SIGNS):
        yield data[:start] + bytes(random.choice(signs) for _ in range(end - start)) + data[end:], start, end


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 400), marks=pytest.mark.soak)], ids=["few", "many"])
@pytest.mark.parametrize("pretty", [False, True], ids=["a line", "lines"])
@pytest.mark.parametrize("path", FILES)
def test_each_whole_entry_is_kept_and_none_is_invented(path: str, pretty: bool, seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        text = config_text(path, random, pretty)
        assert shown(path, salvaged(text.data, LAYOUTS[path])) == text.entries
        for data, start, end in damages(text, random):
            found = shown(path, salvaged(data, LAYOUTS[path]))
            whole = text.untouched(start, end)
            said = (path, seed, data, start, end)
            assert whole.items() <= found.items(), said
            if not any(sign in data[start:end] for sign in b'#x"'):
                assert all(text.says(key, value) for key, value in found.items()), said


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b'{"offsetTable":{"a@g":{0:5,1:12', {0: 5}),
        (b'{"offsetTable":{"a@g":{0:5,1:12\0\0\0', {0: 5}),
        (b'{"offsetTable":{"a@g":{0:5,1:12x4,2:7}}}', {0: 5, 2: 7}),
        (b'{"offsetTable":{"a@g":{0:5,1\xff:4,2:7}}}', {0: 5, 2: 7}),
        (b'{"offsetTable":{"a@g":{0:5,' + b"\0" * 12 + b'9,2:7},"b@g":{2:1}}}', {0: 5}),
        (b'{"later":{"x":1,3:{4:5}},"offsetTable":{"a@g":{0:5}}}', {0: 5}),
        (b"{'offsetTable':{'a@g':{0:5L,1:6}}}", {0: 5, 1: 6}),
        (b'{offsetTable:{"a@g":{"0":5/*c*/,}//\n}}', {0: 5}),
        (b'{"offsetTable":{"a@g":{0:5,1:1.5,2:9223372036854775808,3:null}}}', {0: 5}),
        (b'\xff' * 40 + b'7,2:7},"a@g":{0:5\n\t\t}}}', {0: 5}),  # in the form of a release that writes no pull offsets
        (b'{"lost@g:{0:1},"a@g":{0:5\n\t\t}}', {0: 5}),
    ],
)  # fmt: skip
def test_a_pair_counts_whole_or_not_at_all(text: bytes, kept: dict[int, int]) -> None:
    assert salvaged(text, OFFSETS).tables["offsetTable"]["a@g"] == kept


def test_tables_are_told_apart_after_damage() -> None:
    text = (
        b'{"offsetTable":{"a@g":{0:'
        + b"\xff" * 20
        + b'},"b@g":{0:1}},"pullOffsetTable":{"b@g":{0:9}},"lmqOffsetTable":{"x@y":3}}'
    )
    found = salvaged(text, OFFSETS)
    assert found.tables == {"offsetTable": {"b@g": {0: 1}}, "pullOffsetTable": {"b@g": {0: 9}}, "lmqOffsetTable": {"x@y": 3}}
    assert {(layout.name, keys) for layout, keys in found.broken} == {("offsetTable", ("a@g", 0))} and not found.whole


def two_tables() -> bytes:
    """Offsets and pull offsets of 200 topics, as 5.5.0 writes them."""
    offsets, pulled = (",".join(f'"T{n}@g":{{0:{first + n}}}' for n in range(200)) for first in (100, 5000))
    return f'{{"dataVersion":{{"counter":1}},"offsetTable":{{{offsets}}},"pullOffsetTable":{{{pulled}}}}}'.encode()


def test_a_table_whose_name_is_lost_gives_nothing_to_the_one_before() -> None:
    text = two_tables()
    start = text.index(b'"pullOffsetTable"') - 1200
    found = salvaged(text[:start] + bytes(2048) + text[start + 2048 :], OFFSETS)
    assert all(value == 100 + int(keys[0][1:-2]) for keys, value in entries_of(found.tables["offsetTable"], OFFSETS[0]))
    assert set(found.tables) == {"offsetTable"} and found.before == len(found.tables["offsetTable"]) > 100
    unknown = [keys for layout, keys in found.broken if layout is UNKNOWN_TABLE]
    assert ("T199@g", 0) in unknown and len(unknown) + found.before < 200 + 71
    sure = salvaged(text[:2000] + bytes(300) + text[2300:], OFFSETS)  # both names are whole: every entry has a table
    assert len(sure.tables["pullOffsetTable"]) == 200 > len(sure.tables["offsetTable"]) > 175 and sure.broken_count < 2


def written(form: str) -> tuple[bytes, dict[str, set[str]]]:
    """A file with both tables, of different entries; (the text, table -> the names of its entries)."""
    newer, older = form == "newer", form == "older"
    pair, row, table = ("\n\t\t\t", "\n\t\t", "\n\t") if newer else ("", "\n\t\t", "\n\t") if older else ("", "", "")
    entries = {"offsetTable": {f"T{n}@g" for n in range(5)}, "pullOffsetTable": {f"P{n}@q" for n in range(0 if older else 5)}}
    parts = [f'{table}"dataVersion":{{"counter":1}}']
    for name, names in entries.items():
        if names:
            rows = (f'{row}"{each}":{{{pair}0:{n},{pair}1:{n}{row}}}' for n, each in enumerate(sorted(names)))
            parts.append(f'{table}"{name}":{{{",".join(rows)}{table}}}')
    return f"{{{','.join(parts)}{table[:1]}}}".encode(), entries


@pytest.mark.parametrize("seeds", [range(150), pytest.param(range(150, 40_000), marks=pytest.mark.soak)], ids=["few", "many"])
@pytest.mark.parametrize("form", ["newer", "a line"])
def test_whatever_release_reads_the_file_no_entry_goes_to_the_other_table(form: str, seeds: range) -> None:
    text, entries = written(form)
    name = text.index(b'"pullOffsetTable"')
    for seed in seeds:
        random, data = Random(seed), bytearray(text)
        for _ in range(random.choice([1, 1, 2, 3])):
            start = name + random.randrange(-40, 40) if random.random() < 0.7 else random.randrange(len(data))
            end = min(len(text), start + random.choice([1, 1, 2, 3, 5, 8, 20, 40, 80]))
            signs = random.choice([b"\0", b"\xff", b'{}[]:,"0123456789ab@\n', bytes(range(256))])
            data[start:end] = bytes(random.choice(signs) for _ in range(end - start))
        found = salvaged(bytes(data), OFFSETS).tables
        for own, other in (("offsetTable", "pullOffsetTable"), ("pullOffsetTable", "offsetTable")):
            assert not found.get(own, {}).keys() & entries[other], (seed, bytes(data))


def test_a_file_in_the_form_of_an_older_release_holds_no_pull_offsets() -> None:
    text, _ = written("older")
    start = text.index(b'"T2@g"')
    found = salvaged(text[:start] + bytes(12) + text[start + 12 :], OFFSETS)
    assert set(found.tables["offsetTable"]) == {"T0@g", "T1@g", "T3@g", "T4@g"} and set(found.tables) == {"offsetTable"}


@pytest.mark.parametrize("filler", [0, 0xFF])
@pytest.mark.parametrize("path", [path for path in FILES if len(LAYOUTS[path]) > 1])
def test_damage_around_the_begin_of_a_table_moves_no_entry_to_another_one(path: str, filler: int) -> None:
    text = config_text(path, Random(5), pretty=False)
    for layout in LAYOUTS[path]:
        head = b'"%b":{' % layout.name.encode()
        at = text.data.find(head)
        for start in range(max(0, at - 40), at + len(head) + 40) if at >= 0 else ():
            for size in (1, 2, 4, 8, 16, 32, 60, 200):
                end = min(start + size, len(text.data))
                data = text.data[:start] + bytes([filler]) * (end - start) + text.data[end:]
                found = shown(path, salvaged(data, LAYOUTS[path]))
                assert all(text.says(key, value) for key, value in found.items()), (start, end, data)


def test_a_table_under_a_damaged_name_is_known_by_its_entries() -> None:
    found = salvaged(b'{"dataVersion":{"counter":4},"g":{"x":["a"]},"offsexTable":{"a@g":{0:5\n\t\t}}}', OFFSETS)
    assert found.tables == {"offsetTable": {"a@g": {0: 5}}} and not found.whole


def test_an_entry_without_a_whole_value_is_named() -> None:
    found = salvaged(b'{"topicConfigTable":{"A":{"perm":6},"B":{"perm":', LAYOUTS["config/topics.json"])
    assert found.tables == {"topicConfigTable": {"A": {"perm": 6}}} and found.broken_count == 1
    assert found.broken[0][1] == ("B",)


HOSTILE = {
    "lists": b"[" * 100_000, "objects": b"{" * 100_000, "keys": b'{"a":' * 40_000, "zeros": bytes(16 << 20),
    "zeros inside": b'{"offsetTable":' + bytes(16 << 20) + b"}", "escapes": b'"' + b'\\"' * 100_000, "comments": b"/*" * 100_000,
    "quotes": b'"' * 100_000, "single": b"'\"" * 100_000, "braces": b"}" * 100_000,
    "rows": b'{"topicConfigTable":{"a":{' * 30_000,
    "names": b'{"offsetTable":{' + b'"a":{' * 50_000, "digits": b'{"offsetTable":{"a":{0:' + b"9" * 1_000_000 + b"}}}",
    "signs": b'{"offsetTable":{"' + b"@" * 1_000_000, "half names": b'{"offsetTable":{"' + b'@a":{x,' * 50_000,
    "spaces": b'"a"' + b" " * 1_000_000 + b"x",
}  # fmt: skip


HOSTILE_FOR = {"config/topics.json": b"topicConfigTable", "config/consumerOffset.json": b"offsetTable"}


def by_default(number: int, text: bytes, path: str) -> bool:
    """Each text is read as the table that it looks like, else as one of both in turn; the other is for the mark soak."""
    like = [path for path, name in HOSTILE_FOR.items() if name in text]
    return path == (like or list(HOSTILE_FOR))[number % (len(like) or 2)]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        pytest.param(name, path, marks=() if by_default(number, text, path) else pytest.mark.soak)
        for number, (name, text) in enumerate(HOSTILE.items())
        for path in HOSTILE_FOR
    ],
)
def test_hostile_texts_take_time_by_their_size(name: str, path: str) -> None:
    began = time.process_time()
    assert not shown(path, salvaged(HOSTILE[name], LAYOUTS[path]))
    assert time.process_time() - began < 6  # some take a second; what is quadratic takes many minutes


def test_no_text_raises() -> None:
    random = Random(7)
    pieces = [piece.encode() for piece in (*TEXTS, *VALUES)] + list(WHOLE) + [b'{"offsetTable":{', b'"a@g":{', b"0:5,", b"}"]
    for _ in range(1000):
        text = b"".join(random.choices(pieces, k=random.randrange(1, 30)))
        for path in FILES:
            salvaged(text, LAYOUTS[path])

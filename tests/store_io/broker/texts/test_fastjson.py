"""Texts as the releases' parsers read them: each row is what real brokers of these releases did (config.md 3)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store_io.broker.releases import broker_rules
from store_io.broker.settings.config_rules import ConfigRules, config_rules
from store_io.broker.texts import fastjson
from store_io.broker.texts.fastjson import (
    NOWHERE,
    OF_NUMBERS,
    ConfigFault,
    Nothing,
    Pairs,
    never_closed,
    parse_tolerant,
    parse_written,
)
from store_io.broker.texts.tables import Table, groups_of, lmq_offsets_of, offsets_of, topics_of
from store_io.broker.texts.values import NotExact

OLD, MIDDLE, NEW, NEWEST = (config_rules(broker_rules(release)) for release in ("4.9.8", "5.3.3", "5.4.0", "5.5.0"))
ALL = (OLD, MIDDLE, NEW, NEWEST)
OF = {"topics": topics_of, "groups": groups_of, "offsets": offsets_of}


def load(text: bytes | str, of: str, rules: ConfigRules) -> Table | Literal["?"] | None:
    """The table, None where the release refuses the text; "?" where that is not known. What a broker writes must not depend on
    the parser."""
    data = text.encode() if isinstance(text, str) else text
    table: Table | Literal["?"] | None
    try:
        tree = parse_tolerant(data, rules)
        table = OF[of](tree, rules)
        if isinstance(tree, Pairs) and tree.doubt:
            table = "?"
    except ConfigFault as fault:
        table = None if fault.known else "?"
    try:
        read = parse_written(data, None, OF_NUMBERS if of == "offsets" else NOWHERE)
    except ConfigFault:
        return table
    if isinstance(read, dict):
        try:
            assert OF[of](read, rules) == table
        except ConfigFault as fault:
            assert table == (None if fault.known else "?")
        except NotExact:  # the other one decides
            pass
    return table


def known(text: bytes | str, of: str, rules: ConfigRules) -> Table | None:
    table = load(text, of, rules)
    assert table != "?"
    return table


def taken(text: bytes | str, of: str = "topics") -> str:
    """What each of the four releases makes of it: entries (+), none (o), refused (-), not known (?)."""
    tables = [load(text, of, rules) for rules in ALL]
    return "".join("-" if table is None else "?" if table == "?" else "+" if table.entries else "o" for table in tables)


def taken_by(text: str, of: str, releases: Iterable[str]) -> str:
    """The same of other releases, without a word on entries: taken (+), refused (-), not known (?)."""
    tables = [load(text, of, config_rules(broker_rules(release))) for release in releases]
    return "".join("-" if table is None else "?" if table == "?" else "+" for table in tables)


@pytest.mark.parametrize(
    ("text", "topics", "groups", "offsets"),
    [
        (b" \n\t ", "oo--", "-o--", "o---"),
        (b"\x1a", "oo--", "-o--", "o---"),
        (b"NULL", "oo--", "oo--", "oo--"),
        (b'""', "oooo", "-ooo", "o---"),
        (b"}", "oooo", "-ooo", "o-oo"),
        (b"null", "oooo", "oooo", "oooo"),
        (b"{}", "oooo", "oooo", "oooo"),
        (b'{"a":1}', "oooo", "oooo", "oooo"),
        (b"/* c */ {}", "oooo", "oooo", "oooo"),
        (b"// c\n{}", "oooo", "oooo", "oooo"),
        (b"\xef\xbb\xbf{}", "oooo", "oooo", "oooo"),
        (b"{}\0\0", "oooo", "oooo", "oooo"),
        (b"[]", "oo--", "oo--", "oo--"),
        (b"[{}]", "----", "----", "----"),
        (b'"x"', "----", "----", "----"),
        (b"123", "----", "----", "----"),
        (b"true", "----", "----", "----"),
        (b"<html>", "----", "----", "----"),
        (bytes(9), "----", "----", "----"),
        (b"{", "----", "----", "----"),
        (b"{}garbage", "----", "----", "----"),
        (b"{} {}", "----", "----", "----"),
        (b'{"@type":"java.lang.Runtime"}', "--oo", "--oo", "--oo"),
        (b'{"@type":"java.util.HashMap"}', "-ooo", "-ooo", "-ooo"),
    ],
)
def test_texts_without_a_table(text: bytes, topics: str, groups: str, offsets: str) -> None:
    assert [taken(text, of) for of in OF] == [topics, groups, offsets]


TOPIC = '{"topicConfigTable":{"T":{"readQueueNums":%s}}}'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("4", [4, 4, 4, 4]),
        ('"4"', [4, 4, 4, 4]),
        ("4L", [4, 4, 4, 4]),
        ("1e3", [1000] * 4),
        ("1.5", [1] * 4),
        ("null", [16, 16, 0, 0]),
        ("2147483648", [None] * 4),
        ('"x"', [None] * 4),
        ("0x10", [None] * 4),
        ("[]", [None] * 4),
        ("true", [1] * 4),
        ("99999999999999999999.0", [1661992959] * 4),
        ("1E400", [None, None, 2147483647, 2147483647]),
        ('"4.0"', [4] * 4),
        ('"1e3"', [None, None, 1000, 1000]),
        ('"1,000"', [1000, 1000, None, 1000]),
        ('""', [16, 16, 0, 0]),
        ('" 4 "', [None] * 4),
        ("{}", [None, None, 0, 0]),
        ("[1]", [None, None, 1, 1]),
        ("+1", [1] * 4),
        ("1.5D", [1, 1, None, 1]),
        ("NULL", [16, 16, None, None]),
    ],
)
def test_numbers_of_a_topic(value: str, expected: list[int | None]) -> None:
    tables = [known(TOPIC % value, "topics", rules) for rules in ALL]
    assert [table and table.entries["T"]["readQueueNums"] for table in tables] == expected


# Texts of topics.json, and what each of the four releases makes of them, as `taken` says.
TOPICS = {
    # Taken by real brokers in some places, and refused in others.
    "not known": [
        ('{"topicConfigTable":{"T":{"topicName":{"@type":"java.util.HashMap"}}}}', "?+++"),
        ('{"topicConfigTable":{"T":{"x":{"y":1}\\,"perm":2}}}', "??--"),
        ('{"x":["y"]L,"topicConfigTable":{"T":{}}}', "??--"),
        ('{"x":{1 :2},"topicConfigTable":{"T":{}}}', "??--"),
        ('{"topicConfigTable":{"T":{"attributes":{}"perm":2}}}', "--??"),
        ('{"topicConfigTable":{"T":{"attributes":{"x":"y"0}}}}', "-???"),
        ('{"topicConfigTable":{"T":{"topicFilterType":"9223372036854775808"}}}', "++??"),
        ('{"topicConfigTable":{00:{}}}', "--??"),
        (b"[ ]", "??--"),
        (b"{}/*\0\0", "????"),
        (b"\xef\xbb\xbfk", "????"),
    ],
    "a table": [
        ("{'topicConfigTable':{'T':{},},}", "++++"),
        ('{"topicConfigTable":{"T":{"perm":2},"T":{"perm":4}}}', "++++"),
        ('{topicConfigTable:{"T":{}}}', "++--"),
        ('{"topicConfigTable":{"T":{},,}}', "++--"),
        ('{"TopicConfigTable":{"T":{}}}', "++oo"),
        ('{"topic_config_table":{"T":{}}}', "++oo"),
        ('{"topicConfigTable":null}', "----"),
        ('{"topicConfigTable":[]}', "----"),
        ('{"topicConfigTable":{"T":null}}', "----"),
        ('{"topicConfigTable":{"T":{}}', "----"),
        ('{"topicConfigTable":{"T":{} "U":{}}}', "----"),
        ('{"topicConfigTable":{"T" {}}}', "----"),
        ('{"topicConfigTable":{"T":}}', "----"),
        ('{"topicConfigTable":{"T\\u0041\\x42":{}}}', "++++"),
        (b'{"topicConfigTable":{"T\xff":{}}}', "++++"),
    ],
    "in the place of a field": [
        ('{"topicConfigTable":{"T":{"topicFilterType":7}}}', "----"),
        ('{"topicConfigTable":{"T":{"topicFilterType":"OTHER"}}}', "++++"),
        ('{"topicConfigTable":{"T":{}},"dataVersion":{"timestamp":"x"}}', "----"),
        ('{"topicConfigTable":{"T":{"0":1}}}', "++++"),
        ('{"topicConfigTable":{"T":{0:1}}}', "----"),
        ('{"topicConfigTable":{0:{}}}', "--++"),
        ('{"topicConfigTable":{x-y:{}}}', "----"),
        ('{"topicConfigTable":{"T":{"\x0bperm":1}}}', "++++"),
        ('{"topicConfigTable":{"T":{\x0b"perm":1}}}', "----"),
        ('{"topicConfigTable":{"T":{"perm":\x0b1}}}', "??--"),
        ('{"topicConfigTable":{"T":{"perm":1 "order":true}}}', "????"),
        ('{"topicConfigTable":{"T":{"x":/*c*/1}}}', "++??"),
        ('{"topicConfigTable":{"T":{"x":new Date(1)}}}', "????"),
        ('{"topicConfigTable":{"T":{"x":{"$ref":"$"}}}}', "????"),
    ],
    "brackets: not known where they do not match, refused where one is missing": [
        ('{"topicConfigTable":{"T":{"perm":6}]}', "????"),
        ('{"topicConfigTable":{"T":{"x":[1}}}', "????"),
        ('{"topicConfigTable":{"T":{"x":[1]]}}}', "????"),
        ('{"topicConfigTable":{"T":{"x":]}}}', "????"),
        ('{"topicConfigTable":{"T":{{"perm":6}}}', "????"),
        ('{"topicConfigTable":{"T":{"perm":6}{}}', "????"),
        ('{"topicConfigTable":{"T":{"perm":6}', "----"),
        ('{"topicConfigTable":{"T":{"perm":6,"x":[1,[2],{"a":1}', "----"),
        ('{"topicConfigTable":{"T":{"perm":6}}}}', "----"),
    ],
}


@pytest.mark.parametrize(
    ("text", "entries"), [pytest.param(*case, id=f"{what}: {case[0]!r}") for what, cases in TOPICS.items() for case in cases]
)
def test_what_releases_make_of_topics(text: bytes | str, entries: str) -> None:
    assert taken(text) == entries


@pytest.mark.parametrize("rules", ALL)
@pytest.mark.parametrize("before", ["", '"x":1,', '"x":1,,'])
def test_what_is_no_white_space_before_a_name_is_none_before_a_later_one(before: str, rules: ConfigRules) -> None:
    assert load(f'{{"topicConfigTable":{{"T":{{{before}\x0b"perm":1}}}}}}', "topics", rules) is None


GROUP = '{"subscriptionGroupTable":{"g":{"consumeEnable":%s}}}'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", [False] * 4),
        ("1.5", [True, True, False, False]),
        ("-1", [False, False, True, True]),
        ('"Y"', [True] * 4),
        ('"T"', [True, True, None, None]),
        ('"x"', [None] * 4),
        ('""', [True, True, False, False]),
        ("[1]", [None] * 4),
    ],
)
def test_whether_a_group_consumes(value: str, expected: list[bool | None]) -> None:
    tables = [known(GROUP % value, "groups", rules) for rules in ALL]
    assert [table and table.entries["g"]["consumeEnable"] for table in tables] == expected


OFFSETS = '{"offsetTable":{"T@g":{%s}}}'


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ("0:5", [5] * 4),
        ("00:5", [5] * 4),
        ('"0":"5"', [5] * 4),
        ("0:5,", [5] * 4),
        ("0:null", [None] * 4),
        ('0:""', [None] * 4),
        ("0:true", [None, 1, 1, 1]),
        ("0:[1]", [None, None, None, 1]),
        ('" 0 ":1', [None] * 4),
        ("0:18446744073709551621", [None, None, 5, None]),
    ],
)
def test_offsets(held: str, expected: list[int | None]) -> None:
    tables = [known(OFFSETS % held, "offsets", rules) for rules in ALL]
    assert [table and table.entries["g", "T", 0] for table in tables] == expected
    assert taken('{"offsetTable":null}', "offsets") == "oooo"


def test_a_version_of_null_fails_behind_the_table() -> None:
    text = '{"dataVersion":null,"%s":{"N":{}}}'
    failing = {of: [known(text % name, of, rules) for rules in ALL] for of, name in (
        ("topics", "topicConfigTable"), ("groups", "subscriptionGroupTable"))}  # fmt: skip
    assert [bool(table and table.fails) for table in failing["topics"]] == [True] * 4
    assert [bool(table and table.fails) for table in failing["groups"]] == [False, True, True, True]
    assert all(table and table.entries for tables in failing.values() for table in tables)


WRITTEN = b"""{
\t"dataVersion":{"counter":14,"stateVersion":0,"timestamp":1795211254147},
\t"offsetTable":{"orders@g":{0:12,1:3\n\t\t},"%RETRY%g@g":{0:0\n\t\t}}
}"""


@pytest.mark.parametrize("rules", ALL)
def test_every_prefix_of_what_a_broker_writes_is_refused_with_zeros_after_it_too(rules: ConfigRules) -> None:
    for size in range(1, len(WRITTEN)):
        for data in (WRITTEN[:size], WRITTEN[:size] + bytes(len(WRITTEN) - size)):
            assert never_closed(data)
            with pytest.raises(ConfigFault):
                parse_tolerant(data, rules)
            with pytest.raises(ConfigFault):
                fastjson._Reader(data.decode().rstrip("\0"), rules, len(data)).read()
    assert parse_tolerant(WRITTEN + bytes(9), rules) == parse_written(WRITTEN)


def test_integer_keys_may_stand_without_quotes_and_texts_stay_as_they_are() -> None:
    assert parse_written(b'{"a":{0:12,-1:3,\n 2 : 4},"{5:6,7:8":"\\",{9:1"}') == {
        "a": {"0": 12, "-1": 3, "2": 4},
        "{5:6,7:8": '",{9:1',
    }


@pytest.mark.parametrize("flip", [b"\x00", b"\xff", b"}"])
def test_a_fault_is_placed_in_the_file_and_not_in_the_text_with_quotes(flip: bytes) -> None:
    data = bytearray('{"offsetTable":{"ö@g":{0:1,1:2,2:3},"b@g":{0:1,1:2}}}'.encode())
    at = data.index(b"b@g") + 6
    data[at : at + 1] = flip
    with pytest.raises(ConfigFault) as caught:
        parse_written(bytes(data))
    assert abs(caught.value.start - at) <= 1


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((parse_written, text) for text in (b'\\"' * 60_000, b'\\"' * 60_000 + b"\\", b'"' * 60_001, b"{0" * 60_000)),
        *(
            (lambda text: parse_tolerant(text, OLD), text)
            for text in (b"{'" + b"\\'" * 60_000, b"{" + b"/*" * 60_000, b"{" + b"," * 200_000, b"{'a':" + b"9" * 100_000)
        ),
    ],
)
def test_texts_take_no_quadratic_time(parse: Callable[[bytes], object], text: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(ConfigFault):
        parse(text)
    assert time.process_time() - begun < 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=4).filter(lambda key: key not in ("@type", "$ref")), _JSON, min_size=1, max_size=3))
def test_both_readers_agree_on_json(value: dict[str, Any]) -> None:
    for ascii_only in (True, False):
        data = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        if b"@type" not in data and not (b"\x1a" in data and not ascii_only):
            assert parse_tolerant(data, NEWEST) == parse_tolerant(data, OLD) == json.loads(json.dumps(value), parse_float=Decimal)


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=80), st.text(alphabet="{}[]\"',:01.eE-\\ntrufalsx/*@ \0\x1a", max_size=60).map(str.encode)))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for rules in ALL:
        for of in OF:
            load(data, of, rules)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"a":[', b"{'a':["])
def test_nesting_without_end_is_not_known(opening: bytes) -> None:
    with pytest.raises(ConfigFault) as caught:
        parse_tolerant(b"{'a':" + opening * 50_000, OLD)
    assert not caught.value.known


def test_much_that_no_broker_writes_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastjson, "MAX_ODD_VALUES", 3)
    with pytest.raises(ConfigFault) as caught:
        parse_tolerant(b"{'a':[1,2,3,4]}", OLD)
    assert not caught.value.known
    assert isinstance(parse_tolerant(b"null", OLD), Nothing)


HUGE = "1e99999999999999999999"


@pytest.mark.parametrize(
    ("text", "of", "entries"),
    [
        (OFFSETS % f"{HUGE}:1", "offsets", "????"),
        (OFFSETS % f"0:{HUGE}", "offsets", "????"),
        (OFFSETS % f'0:"{HUGE}"', "offsets", "--??"),
        (OFFSETS % f"{'9' * 5000}:1", "offsets", "????"),
        (TOPIC % f'"{HUGE}"', "topics", "--??"),
        (TOPIC % ("9" * 5000), "topics", "????"),
        ('{"dataVersion":{"counter":0.%s},"topicConfigTable":{"T":{}}}' % ("1" * 5000), "topics", "????"),
    ],
)
def test_numbers_of_too_many_digits_are_not_known(text: str, of: str, entries: str) -> None:
    assert taken(text, of) == entries
    with pytest.raises(ConfigFault) as caught:
        parse_written(text.replace('"' + HUGE + '"', HUGE).encode(), None, NOWHERE)
    assert "decimal" not in str(caught.value) and "sys." not in str(caught.value)


def test_zero_stays_zero_with_an_exponent_and_beyond_all_bounds_nothing_is_known() -> None:
    assert taken(TOPIC % "0e999999") == "????"
    text = TOPIC % "0e99"
    assert taken(text) == "++++"
    for rules in (NEW, NEWEST):
        table = known(text, "topics", rules)
        assert table is not None and table.entries["T"]["readQueueNums"] == 0


def test_of_a_repeated_table_of_offsets_the_last_counts() -> None:
    text = '{"offsetTable":{"a@g":{0:1}},"offsetTable":{"b@g":{0:2}}}'
    assert taken(text, "offsets") == "??++"
    for rules in (NEW, NEWEST):
        table = known(text, "offsets", rules)
        assert table is not None and table.entries == {("g", "b", 0): 2}


def test_a_light_queues_table_goes_before_the_other() -> None:
    read = {"lmqOffsetTable": {"a@g": 7}, "offsetTable": {"a@g": {"0": 1, "1": 2}, "b@g": {"0": 3}}}
    assert lmq_offsets_of(read, NEWEST).entries == {("g", "a", 0): 7, ("g", "b", 0): 3}


def test_null_is_no_entry_of_forbidden_topics() -> None:
    text = '{"forbiddenTable":{"g":{"t":%s}},"subscriptionGroupTable":{"g":{}}}'
    assert [taken(text % value, "groups") for value in ("null", "1", '"2"', "[1]")] == ["+---", "++++", "++++", "+-??"]


def test_a_text_of_too_many_bytes_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastjson, "MAX_ODD_BYTES", 20)
    with pytest.raises(ConfigFault, match="too large to be read key by key") as caught:
        parse_tolerant(b"{'a':'" + b"\\u0041" * 4 + b"'}", OLD)
    assert not caught.value.known


def test_a_fault_is_placed_by_bytes() -> None:
    text = '{"topicConfigTable":{"标签标签标签":{"perm":x}}}'.encode()
    for rules in ALL:
        with pytest.raises(ConfigFault) as caught:
            parse_tolerant(text, rules)
        assert caught.value.start == text.index(b"x}")


def test_a_nested_object_for_a_text_is_not_known() -> None:
    assert taken('{"topicConfigTable":{"T":{"topicName":' + '{"a":' * 950 + "1" + "}" * 950 + "}}}") == "????"

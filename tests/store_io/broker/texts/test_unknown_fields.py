"""Values of fields that a release does not know, or reads only to pass them over: what its parser itself said of each.

Recorded from RemotingSerializable.fromJson of four releases, with fastjson 1.2.69, 1.2.83, fastjson2 2.0.43 and 2.0.59.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from store_io.broker.releases import broker_rules
from store_io.broker.settings.config_rules import config_rules
from store_io.broker.texts.tables import Table
from tests.store_io.broker.texts.test_fastjson import load, taken_by

RELEASES = "4.8.0", "5.3.3", "5.4.0", "5.5.0"
_SCALARS = ["true", "5", "-1.5", "1e400", "99999999999999999999999"]
_NUMBERS_AS_NAMES = ["{0:1}", '{0:"x"}', "{0:{1:[{2:3}]}}", "[{0:1}]"]
_ODD_NAMES = [
    *_NUMBERS_AS_NAMES, "{-1:1}", "{a:1}", '{"a":{b:1}}', "{null:1}", "{1.5:1}", '{"a":{"b":{7:8}}}', '{"a":{0:1},"a":5}',
]  # fmt: skip
_LATER_FIELD = {
    "++--": [*_ODD_NAMES, '{"T@g":{0:5,1:6},"T2@g":{}}'],
    "++++": [
        *_SCALARS,
        "null",
        '"x"',
        '""',
        "[]",
        "[1,[2,{}]]",
        '[null,{"a":1}]',
        "{}",
        '{"a":{"b":null}}',
        '{"0":1}',
        "{'a':1}",
        "1L",
    ],
}
# (kind of file, text) -> taken (+) or refused (-) by each of the releases -> values
SAID: dict[tuple[str, str], dict[str, list[str]]] = {
    ("offsets", '{"offsetTable":{"T@g":{0:5}},"laterField":%s}'): _LATER_FIELD,
    ("topics", '{"topicConfigTable":{"T":{"laterField":%s}}}'): _LATER_FIELD,
    ("offsets", '{"offsetTable":{"T@g":{0:5}},"groupTopicMap":%s}'): {
        "+---": [
            *_SCALARS,
            '"x"',
            "[]",
            "[1,[2,{}]]",
            '[null,{"a":1}]',
            '{"0":1}',
            "{0:1}",
            "{-1:1}",
            "{a:1}",
            '{"a":{0:1},"a":5}',
            "{'a':1}",
            "{null:1}",
            "{1.5:1}",
            "1L",
            '{"g":5}',
        ],
        "+-++": [
            "null",
            '""',
            '{"a":{"b":null}}',
            '{0:"x"}',
            "{0:{1:[{2:3}]}}",
            '{"a":{"b":{7:8}}}',
            '{"a":{b:1}}',
            '{"T@g":{0:5,1:6},"T2@g":{}}',
            '{"g":"T"}',
            '{"g":{"a":1}}',
            '{0:["T"]}',
        ],
        "++--": ["[{0:1}]", "[{}]"],
        "++++": ["{}", '{"g":["T","%RETRY%g"]}', '{"g":null}'],
    },
    ("offsets", '{"offsetTable":{"T@g":{0:5}},"pullOffsetTable":%s}'): {
        "++--": [*_ODD_NAMES, '{"T@g":{0:null}}', '{"T@g":{0:"x"}}'],
        "++-+": ['{"T@g":{0:5,1:6},"T2@g":{}}', '{"T@g":{0:"5"}}'],
        "+++-": [
            *_SCALARS,
            '"x"',
            "[]",
            "[1,[2,{}]]",
            '[null,{"a":1}]',
            '{"a":{"b":null}}',
            '{"0":1}',
            "{'a':1}",
            "1L",
            '{"T@g":null}',
            '{"T@g":{"x":1}}',
            '{"T@g":[]}',
            '{"T@g":5}',
        ],
        "++++": ["null", '""', "{}"],
    },
    ("groups", '{"subscriptionGroupTable":{"g":{"groupRetryPolicy":%s}}}'): {
        "+---": [*_SCALARS, *_NUMBERS_AS_NAMES, '"x"', "[1,[2,{}]]", '[null,{"a":1}]', "{-1:1}", "{1.5:1}", "1L"],
        "++--": [
            "[]",
            '{"a":{"b":{7:8}}}',
            "{a:1}",
            '{"a":{b:1}}',
            '{"a":{0:1},"a":5}',
            "{null:1}",
            '{"T@g":{0:5,1:6},"T2@g":{}}',
        ],
        "++++": [
            "null",
            '""',
            "{}",
            '{"a":{"b":null}}',
            '{"0":1}',
            "{'a':1}",
            '{"type":"CUSTOMIZED"}',
            '{"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":1,"max":2,"multiplier":3}}',
            '{"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1,2]}}',
        ],
    },
}


@pytest.mark.parametrize("place", SAID, ids=lambda place: place[1])
def test_the_audit_never_says_the_opposite(place: tuple[str, str]) -> None:
    of, text = place
    found, unknown = {}, 0
    for said, values in SAID[place].items():
        for value in values:
            ours = taken_by(text % value, of, RELEASES)
            unknown += ours.count("?")
            if any(our not in (theirs, "?") for our, theirs in zip(ours, said, strict=True)):
                found[value] = said, ours
    assert not found
    if "laterField" in text:
        assert not unknown


def test_from_fastjson2_2_0_63_on_numbers_as_names_are_passed_over() -> None:
    rules = replace(config_rules(broker_rules("5.5.0")), skips_numbers_as_names=True)  # that of 5.5.1
    text = '{"offsetTable":{"T@g":{0:5}},"laterField":%s}'
    taken = "{0:1}", "{0:{1:[{2:3}]}}", "[{-1:1}]", "{1.5:1}"
    assert all(isinstance(load(text % value, "offsets", rules), Table) for value in taken)
    assert [load(text % value, "offsets", rules) for value in ("{a:1}", '{"b":[{0:1,a:1}]}')] == [None, None]

"""Texts of config/ in a release's own form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store_io.broker.releases import broker_rules
from store_io.broker.settings.config_rules import config_rules
from store_io.broker.texts.fastjson import parse_written
from store_io.broker.texts.written import config_text, group_row, topic_row, version_row

OLD, NEW = config_rules(broker_rules("4.9.8")), config_rules(broker_rules("5.4.0"))
MIDDLE = config_rules(broker_rules("5.3.3"))
# A class's name, and a reference to another part of the text: no broker writes these two as names or values.
TEXT = st.text(st.characters(codec="utf-8")).filter(lambda text: text not in ("@type", "$ref"))


def test_fastjson_1_has_offsets_on_one_line() -> None:
    table = {"offsetTable": {"t@g": {0: 5, 1: 6}, "u@g": {0: 1}}}
    assert config_text(table, OLD) == b'{\n\t"offsetTable":{\n\t\t"t@g":{0:5,1:6\n\t\t},\n\t\t"u@g":{0:1\n\t\t}\n\t}\n}'


def test_fastjson2_has_a_pair_a_line() -> None:
    table = {"offsetTable": {"t@g": {0: 5, 1: 6}}, "forbiddenTable": {}}
    expected = '{\n\t"offsetTable":{\n\t\t"t@g":{\n\t\t\t0:5,\n\t\t\t1:6\n\t\t}\n\t},\n\t"forbiddenTable":{\n\t\t\n\t}\n}'
    assert config_text(table, NEW) == expected.encode()


def test_an_old_topic_has_no_attributes() -> None:
    assert "attributes" not in topic_row("t", 3, {}, OLD) and version_row(1, 2, OLD) == {"counter": 1, "timestamp": 2}
    assert topic_row("t", 3, {"queue.type": "BatchCQ"}, MIDDLE)["attributes"] == {"queue.type": "BatchCQ"}
    assert group_row("g", OLD).keys() < group_row("g", NEW).keys()


def test_half_a_surrogate_pair_is_escaped() -> None:
    assert config_text({"\ud800": 1}, OLD) == b'{\n\t"\\ud800":1\n}'


@pytest.mark.parametrize("rules", [OLD, MIDDLE, NEW], ids=["4.9.8", "5.3.3", "5.4.0"])
@settings(max_examples=40)
@given(held=st.dictionaries(TEXT, st.dictionaries(TEXT, st.integers(-(1 << 63), (1 << 63) - 1) | TEXT | st.booleans())))
def test_what_is_written_is_read(rules: Any, held: dict[str, dict[str, Any]]) -> None:
    assert parse_written(config_text({"table": held}, rules)) == {"table": held}

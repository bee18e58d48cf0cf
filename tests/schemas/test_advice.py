"""What causes of gaps mean for an audit, and where their exit codes are promised."""

from __future__ import annotations

import json
import re

from jobs.installation import ROOT
from schemas.advice import MEANINGS, USUAL, Cause, exit_code_of
from store_io.base.exit_codes import CONSISTENT, GAP_CODES, INCOMPLETE


def test_a_cause_s_text_is_a_key_that_stays() -> None:
    assert all(re.fullmatch(r"[a-z0-9_]+", cause) for cause in Cause) and set(MEANINGS) <= set(Cause)
    assert exit_code_of("a_cause_of_a_later_version") == USUAL.exit_code == INCOMPLETE


def test_what_was_left_out_on_request_is_the_only_thing_on_purpose() -> None:
    assert {cause for cause, meaning in MEANINGS.items() if meaning.on_purpose} == {Cause.LEVEL_QUICK, Cause.TIME_LIMIT}


def test_each_exit_code_of_a_cause_is_in_the_contract_and_in_the_schema() -> None:
    codes = {exit_code_of(cause) for cause in Cause} - {CONSISTENT}
    promised = re.findall(r"^\| ([0-9]+)", (ROOT / "docs" / "contract.md").read_text("utf-8"), re.MULTILINE)
    assert codes <= set(map(int, promised)) and set(GAP_CODES) >= codes - {10, 20}
    schema = json.loads((ROOT / "schemas" / "json" / "result.schema.json").read_text("utf-8"))
    of_store = schema["properties"]["stores"]["items"]
    for place, key in ((schema, "exit_code"), (of_store, "code")):
        incomplete = place["allOf"][0]["else"]["properties"][key]["enum"]
        assert codes <= set(incomplete) <= set(place["properties"][key]["enum"])

"""--summary-markdown: literal lines, and names that try to be markup."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.audit import results
from jobs.report.files.ci_files import ROWS, summary_markdown
from jobs.report.files.result_files import result_json
from jobs.report.texts.text import printable
from jobs.runtime.output import OutputFailed
from tests.support.handmade import samples


def text_of(*outcomes: object, **run: object) -> str:
    return summary_markdown(json.loads(result_json(replace(samples.RUN, **run), outcomes)))  # type: ignore[arg-type]


def test_the_whole_file() -> None:
    lines = text_of(samples.clean(), samples.damaged(), samples.not_audited(), problems=("table x: no space",)).splitlines()
    meaning = "bytes or messages are damaged or missing, or a start would lose messages or fail"
    assert lines[0] == f"## RocketMQ store audit: exit code 20 ({meaning})"
    assert "* table x&#58; no space" in lines
    assert "* Not audited completely: 1 store of 3" in lines
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[0] == "| code | store | safe to start? | lost messages | loss | rebuildable | note | verdict |"
    assert [row.split(" | ")[0] for row in rows[1:]] == ["| 20", "| 3", "| 0"]
    assert rows[3].startswith("| 0 | <code>calm</code> | ") and " | 0 | 0 | 0 | 0 | RocketMQ 5.3.3 would start" in rows[3]
    assert " | not known | " in rows[2]


def test_an_assumed_release_is_said_first() -> None:
    lines = text_of(replace(samples.clean(), release_from="default")).splitlines()
    assert lines[2] == "* Release 5.3.3 was assumed for 1 store: nobody named a known one (`--release`)"


MARKUP = "@everyone https://evil.example www.evil.example a|b `x` [l](u) **b** #1 ~~s~~ a_b_c &lt; <!--".split()


@pytest.mark.parametrize("name", [*samples.HOSTILE_NAMES, *MARKUP])
def test_no_name_is_markup(name: str) -> None:
    (row,) = [line for line in text_of(replace(samples.clean(), name=name, verdict=name)).splitlines() if line.startswith("| 0 ")]
    assert row.count("|") == 9
    cell = row.split("|")[2].strip().removeprefix("<code>").removesuffix("</code>")
    assert re.fullmatch(r"(?:[^\x00-\x7f]|[\w\s,.;%'/…-]|&#\d+;|<span>[@/.]</span>)*", cell) and "_" not in cell
    assert "//" not in cell and "www." not in cell and not re.search(r"@\w", cell)
    shown = html.unescape(re.sub(r"</?span>", "", cell))
    assert shown == printable(name, 100)


def test_many_stores_are_cut_and_counted() -> None:
    lines = text_of(*(replace(samples.clean(), name=f"s{n}") for n in range(ROWS + 7))).splitlines()
    assert sum(line.startswith("| 0 |") for line in lines) == ROWS and lines[-1] == "and 7 more stores: result.json has all"


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    for write, option in ((results.write_markdown, "--summary-markdown"), (results.write_junit, "--junit")):
        with pytest.raises(OutputFailed, match=f"^{option} .*: cannot write: "):
            write(f"{tmp_path}/none/file", json.loads(result_json(samples.RUN, [samples.clean()])))

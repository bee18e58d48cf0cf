"""The terminal after an audit: golden files, and what stands in a summary."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.audit.run_audit import write_run_files
from jobs.installation import ENTRY
from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import report_html
from jobs.report.texts.safety_text import meaning_of
from jobs.report.texts.summary_text import summary_text
from jobs.runtime import output
from schemas.rows import Finding
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter, varied
from tests.support.texts.golden import check


@pytest.mark.parametrize("make", [samples.clean, samples.damaged, samples.not_audited, samples.refused], ids=lambda m: m.__name__)
@pytest.mark.parametrize("colour", [False, True], ids=["plain", "colour"])
def test_summary_of_one_store(make: Any, colour: bool) -> None:
    name = f"summary-{make.__name__}{'-colour' if colour else ''}.txt"
    check(name, summary_text(samples.RUN, [make()], "/out", colour))


def test_findings_that_one_damaged_range_makes_are_told_as_one_range() -> None:
    outcome = samples.damaged()
    first = next(f for f in outcome.found.findings if f.code == "commitlog_damaged")
    outcome = varied(outcome, findings=[first, replace(first, start=first.end, end=(first.end or 0) + 9)], damaged_extents=1)
    told = "no valid message, filler or unwritten space, in 1 damaged range"
    text = " ".join(summary_text(samples.RUN, [outcome], "out").split())
    assert "2 commitlog_damaged: bytes that are " + told in text and told in "".join(report_html(outcome))
    assert ", in " not in meaning_of(varied(outcome, damaged_extents=2), "commitlog_damaged")


def test_summary_of_a_fleet() -> None:
    fleet = [samples.clean(), samples.damaged(), samples.not_audited(), samples.refused()]
    check("summary-fleet.txt", summary_text(replace(samples.RUN, problems=("tables: no space left",)), fleet, "/out"))


def test_a_large_fleet_is_told_in_few_lines_the_dangerous_ones_first() -> None:
    fleet = [replace(samples.clean(), name=f"calm-{i}") for i in range(200)]
    fleet += [replace(samples.refused(), name=f"stuck-{i}") for i in range(30)]
    lines = summary_text(samples.RUN, fleet, "/out").splitlines()
    assert [line.split()[1] for line in lines[1:3]] == ["stuck-0", "stuck-1"]
    assert "      and 190 more stores: start" in lines
    assert len(lines) < 60
    lines = summary_text(samples.RUN, fleet * 2, "/out").splitlines()
    assert lines[51:53] == ["      and 10 more stores: repair", "      and 400 more stores: start"]


def test_notes_are_named_by_kind_where_they_are_counted() -> None:
    few = varied(samples.clean(), counts={"note": 3})
    alter(few, findings=[Finding(code, "f", severity="note") for code in ("store_host_odd", "odd_header", "store_host_odd")])
    told = "3 notes: store_host_odd 2, odd_header 1"
    assert f"  Differs    {told}" in summary_text(samples.RUN, [few], "/out").splitlines()
    fleet = [few, samples.refused()]
    pages = ["".join(index_html(samples.RUN, fleet)), "".join(report_html(few))]
    assert f'<span class="where">{told}</span>' in pages[0] and "1 loss, 1 rebuildable, 3 notes: store_host_odd 2" in pages[0]
    assert ">3 notes</span>: store_host_odd 2, odd_header 1" in pages[1]
    many = varied(few, counts={"note": 8}, findings=[Finding(f"n{i}", "f", severity="note") for i in range(8)])
    assert "  Differs    8 notes: n0 1, n1 1, n2 1 and 5 more kinds" in summary_text(samples.RUN, [many], "/out").splitlines()


def test_a_summary_names_the_command_that_looks_closer_and_breaks_only_its_own_lines() -> None:
    words = ("/copies/" + "x" * 150, "--release", "4.9.8", "--broker-conf", "/c d")
    text = summary_text(samples.RUN, [samples.damaged()], "/out", words=words)
    assert f"  Closer     {ENTRY} explain {words[0]} --release 4.9.8 --broker-conf '/c d' --phy-offset 1124\n" in text
    assert all(len(line) <= 120 for line in text.splitlines() if not line.startswith(("  Closer", "  Repair")))


@pytest.mark.parametrize("missing", ["index.html", "replicas.json", ""])
def test_no_file_is_named_that_was_not_written(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be written does not keep the next one from being written."""
    outcomes = [samples.behind(replace(samples.clean(), name=name)) for name in "ab"]
    real = output.write_local

    def full(path: str, *words: Any, **more: Any) -> None:
        if missing and path.endswith(missing):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, *words, **more)

    monkeypatch.setattr(output, "write_local", full)
    unwritten = write_run_files(output.OutputFolder(str(tmp_path)), samples.RUN, outcomes)
    assert [*unwritten] == [*filter(None, [missing])]
    assert {p.name for p in tmp_path.iterdir()} == {"index.html", "replicas.json"} - {missing}
    said = summary_text(replace(samples.RUN, unwritten=frozenset(unwritten)), outcomes, "/out")
    assert ("index.html to read" in said) == (not missing) and (f"not all are in /out ({missing})" in said) == bool(missing)

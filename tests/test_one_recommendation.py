"""An audit's text, its page, a rescue and the page of its audit recommend one command: the same policy, the same options."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest

from jobs import entry
from jobs.cli.stores import named_stores
from jobs.commands import rescue
from jobs.installation import ENTRY
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.texts.commands import store_words
from jobs.report.texts.summary_text import summary_text
from schemas.rows import NAMED
from store_io.audit.audit_store import run_local
from store_io.model.audit_request import AuditRequest
from store_io.repair.plan_repair_section import repairs_of, steps_tasks
from store_io.source.byte_source import StoreLocation
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import Case

KINDS = sorted(path.name for path in (corpus_tools.CORPUS / "kinds").iterdir() if path.is_dir())
CASES = [*corpus_tools.cases(), *(case for kind in KINDS for case in corpus_tools.of_kind(kind))]
SPREAD = 8  # each eighth store by default, all under the mark soak
SOME = [pytest.param(case, marks=[pytest.mark.soak] if number % SPREAD else []) for number, case in enumerate(CASES)]


def recommended(text: str) -> list[str]:
    """Policy and options of the first repair command in it; [] without one."""
    commands = [shlex.split(line[line.index(ENTRY) :]) for line in text.splitlines() if f"{ENTRY} repair " in line]
    return commands[0][commands[0].index("--policy") :] if commands else []


def lines_of(page: str) -> str:
    """The commands of a page, a line each."""
    found = re.findall(r'<code class="command"[^>]*>(.*?)</code>', page, re.DOTALL)
    return "\n".join(html.unescape(re.sub(r"<[^>]+>", "", command)) for command in found)


def audited(root: Path, case: Case) -> tuple[str, str]:
    """What an audit says of a copy: on the terminal, on its page."""
    location = StoreLocation(str(root))
    outcome = run_local(AuditRequest(root.name, location, case.release, case.broker_conf, release_from=NAMED))
    alter(outcome, repairs=repairs_of(outcome, [task.run() for task in steps_tasks(outcome, location)]))
    given = {"--release": case.release, "--broker-conf": str(root.with_name("broker.conf"))}
    words = store_words(named_stores([str(root)], given)[0])
    page = "".join(report_html(outcome, PageContext(samples.RUN, words, "/out/plan.json")))
    return summary_text(samples.RUN, [outcome], "/out", words=words), lines_of(page)


@pytest.mark.parametrize("case", SOME, ids=[case.name for case in CASES])
def test_corpus(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    root = case.unpack(tmp_path)
    text, page = audited(root, case)
    monkeypatch.setattr(rescue, "KNOWN_RELEASES", ())  # what other releases would do decides nothing here
    conf = str(tmp_path / "broker.conf")
    entry.main(["rescue", str(root), "--release", case.release, "--broker-conf", conf, "--give-up"])  # else none for some copies
    said = capsys.readouterr().out
    own_page = tmp_path / "store-rescued.rescue" / "store" / "report.html"
    of_rescue = lines_of(own_page.read_text()) if own_page.exists() else ""
    assert recommended(text) == recommended(page) == recommended(said) == recommended(of_rescue)

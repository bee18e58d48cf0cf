"""The colour of an answer."""

from __future__ import annotations

from jobs.report.pages.page import style_of
from jobs.report.texts.safety_text import most_dangerous_first
from jobs.report.texts.summary_text import summary_text
from tests.support.handmade import samples
from tests.support.handmade.samples import every_kind
from tests.support.texts.pages import index_of


def test_no_worse_code_stands_below_a_better_one_nor_in_a_milder_colour() -> None:
    fleet = every_kind()
    ranked = most_dangerous_first(fleet)
    codes = [outcome.exit_code for outcome, _ in ranked]
    assert codes == sorted(codes, key=[20, 3, 10, 0].index) and set(codes) == {20, 3, 10, 0}
    rows = [row.split() for row in summary_text(samples.RUN, fleet, "/out").splitlines()[1 : len(fleet) + 1]]
    assert [int(row[0]) for row in rows] == codes
    colours = [style_of(judgement.kind, outcome.exit_code) for outcome, judgement in ranked]
    mildness = ["stop", "unknown", "care", "safe"]
    worst = {code: min(mildness.index(style) for c, style in zip(codes, colours, strict=True) if c == code) for code in codes}
    mildest = {code: max(mildness.index(style) for c, style in zip(codes, colours, strict=True) if c == code) for code in codes}
    assert mildest[20] < worst[3] and mildest[3] < worst[10]
    page = index_of(fleet)
    badges = [badge["class"].split("c-")[1] for badge in page.all("span") if "badge" in badge.get("class", "")]
    assert badges == colours
    scarred = index_of([samples.clean(), samples.not_audited(), samples.already_damaged()])
    assert "1 of 3 stores is already damaged; a start makes nothing worse" in scarred.text
    assert [a["href"] for a in scarred.all("a")] == [f"{name}/report.html" for name in ("scarred", "gone", "calm")]

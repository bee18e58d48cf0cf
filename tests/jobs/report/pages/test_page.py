"""What all pages share, and the colours of answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError, bccache

from jobs.report.pages import page
from jobs.report.pages.page import style_of
from jobs.report.texts.safety_text import most_dangerous_first
from jobs.report.texts.summary_text import summary_text
from tests.support.handmade import samples
from tests.support.handmade.samples import every_kind
from tests.support.texts.pages import index_of

HOSTILE = samples.HOSTILE


def shown(template: str, **view: object) -> str:
    return page._environment().from_string(template).render(view)


def test_whatever_a_template_shows_is_printable_and_escaped() -> None:
    plain = "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\u202e\\x0a&#39;&#34;&amp;"
    broken = plain.replace("/", "/<wbr>")  # a path's slashes
    assert shown("{{ text }}", text=HOSTILE) == plain
    assert shown('<p title="{{ text }}">{{ text|cut(4) }}</p>', text=HOSTILE) == f'<p title="{plain}">&lt;sc…</p>'
    assert shown("{{ text|name }}{{ text|code }}", text=HOSTILE) == f'<bdi>{plain}</bdi><code dir="ltr">{broken}</code>'
    assert shown("{{ text|name ~ ' / ' ~ number }}", text=HOSTILE, number=7) == f"<bdi>{plain}</bdi> / 7"
    assert shown("{% set held %}<b>{{ text }}</b>{% endset %}{{ held }}", text=HOSTILE) == f"<b>{plain}</b>"
    command = shown("{{ text|command }}", text=f"./spark-submit.sh query {HOSTILE} --queue 3")
    assert (
        command == f'<code class="command" dir="ltr"><span>./spark-submit.sh query {plain}</span> <span>--queue 3</span></code>'
    )


@given(st.text(alphabet=st.characters()))
def test_a_shown_text_is_never_markup(text: str) -> None:
    assert not set(shown("{{ text }}", text=text)) & set("<>\"'\x00\x1b\u202e\n")


def test_a_name_that_nobody_gave_is_an_error() -> None:
    for template in ("{{ missing }}", "{{ row.missing }}", "{% if missing %}{% endif %}", "{% for x in missing %}{% endfor %}"):
        with pytest.raises(UndefinedError):
            shown(template, row={})


def test_a_table_shows_as_many_rows_as_it_may_and_counts_the_others() -> None:
    template = (
        '{% from "macros.html" import row, table %}{% set heads = ("name", "#size") %}'
        '{% call(r) table("Files", heads, rows, "there", limit=2) %}{{ row(heads, (r, r|length)) }}{% endcall %}'
    )
    assert shown(template, rows=["a", "b"]).count("<tr>") == 3
    three = shown(template, rows=["a", "b", "c"])
    assert three.count("<tr>") == 3 and '<td class="n" data-label="size">1</td>' in three
    assert "1 more row is not shown here: there." in three


def test_dates_times_and_options_are_not_broken_into_lines() -> None:
    whole = '<span class="w">2026-11-20 21:20:17 to</span> <span class="w">2026-11-21 00:00:00 UTC</span>'
    assert shown("{{ span(1795209617000, 1795219200000) }}") == whole
    assert shown("{{ text|whole }}", text="on 2026-11-20, 1-2026-11-201") == 'on <span class="w">2026-11-20</span>, 1-2026-11-201'
    assert shown("{{ text|whole }}", text=f"2026-11-20{HOSTILE}").startswith('<span class="w">2026-11-20</span>&lt;script')


def test_a_page_comes_in_pieces_of_bounded_size() -> None:
    pieces = list(page._in_pieces(["x" * 40_000] * 5))
    assert [len(piece) for piece in pieces] == [80_000, 80_000, 40_000]


def test_what_was_compiled_is_kept_and_a_full_disk_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = page._environment.__wrapped__
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    made().get_template("macros.html")
    assert [path.suffix for path in tmp_path.iterdir()] == [".cache"]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "gone"))
    made().get_template("macros.html")
    assert not (tmp_path / "gone").exists()


def test_compiled_templates_of_a_folder_that_others_may_write_to_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = page._environment.__wrapped__
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    made().get_template("macros.html")
    tmp_path.chmod(0o777)
    page.trusted.cache_clear()
    monkeypatch.setattr(bccache.marshal, "load", None)  # what reads compiled templates
    with pytest.warns(UserWarning, match="is not run, because another user may have put code there"):
        made().get_template("macros.html")
    page.trusted.cache_clear()


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
    assert "1 of 3 stores is already damaged; 1 not known" in scarred.text
    assert [a["href"] for a in scarred.all("a")] == [f"{name}/report.html" for name in ("scarred", "gone", "calm")]

"""The style sheet of all pages: light and dark, phone and paper. The pages' policy allows this sheet alone, by its digest."""

STYLE = """
:root {
  color-scheme: light dark;
  --bg: #f6f7f9; --card: #fff; --fg: #18202b; --soft: #566274; --line: #d8dee6; --sunk: #eef1f5; --link: #1a56a6;
  --stop: #a61b13; --stop-bg: #fdf0ee; --care: #855000; --care-bg: #fdf6e7; --safe: #14683a; --safe-bg: #edf7f1;
  --unknown: #46566b; --unknown-bg: #eef1f5;
  --message: #6c9bcb; --filler: #a9b4c2; --unwritten: #e3e8ee; --beyond: #f0b44c; --damaged: #c5352b; --plausible: #a88bcf;
  --unread: #8b95a3; --missing: #fff; --mark: #fff; --dark-mark: #5b3d00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #10141a; --card: #181e26; --fg: #e6eaf0; --soft: #a0acbb; --line: #303a46; --sunk: #202832; --link: #8ab8f2;
    --stop: #ff958a; --stop-bg: #2d1917; --care: #f2bd66; --care-bg: #2a2214; --safe: #7fd6a0; --safe-bg: #14271d;
    --unknown: #b3c0d0; --unknown-bg: #202832;
    --message: #4f80b4; --filler: #66727f; --unwritten: #2b343f; --beyond: #c98a25; --damaged: #d94b40; --plausible: #8467ad;
    --unread: #59636f; --missing: #10141a; --mark: #fff; --dark-mark: #201500;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 74rem; background: var(--bg); color: var(--fg);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: anywhere;
}
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .1rem 0 .3rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .5rem; }
p { margin: .4rem 0 .8rem; }
.kicker { color: var(--soft); font-size: .85rem; margin: 0; }
.where, .hint, .more { color: var(--soft); font-size: .92rem; }
.hint { max-width: 48rem; } .hint b { color: var(--fg); font-weight: 600; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1.2rem 1.3rem;
  margin: 1.1rem 0; }
.answer { border-left-width: .4rem; display: grid; grid-template-columns: auto 1fr; gap: 0 1rem; }
.answer .icon { width: 2.6rem; height: 2.6rem; fill: currentColor; }
.icon .i { fill: none; stroke: var(--card); stroke-width: 2.4; stroke-linecap: round; stroke-linejoin: round; }
.answer h2 { font-size: 1.4rem; margin: .2rem 0 .4rem; } .answer .verdict { font-weight: 600; }
.answer ul { margin: .4rem 0; padding-left: 1.2rem; } .answer ul + p { margin-top: .9rem; }
.answer .command + ul { margin-top: .7rem; }
.a-stop { background: var(--stop-bg); border-color: var(--stop); }
.a-safe { background: var(--safe-bg); border-color: var(--safe); }
.a-care { background: var(--care-bg); border-color: var(--care); }
.a-unknown { background: var(--unknown-bg); border-color: var(--unknown); }
.c-stop { color: var(--stop); } .c-care { color: var(--care); } .c-safe { color: var(--safe); }
.c-unknown { color: var(--unknown); }
.badge {
  display: inline-block; border: 1px solid currentColor; border-radius: 1rem; padding: 0 .6rem; font-size: .82rem;
  font-weight: 600; white-space: nowrap;
}
dl.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .7rem; margin: 1.1rem 0; }
.facts div {
  background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .7rem .9rem; display: flex;
  flex-direction: column-reverse; justify-content: flex-end;
}
.facts dt { color: var(--soft); font-size: .86rem; line-height: 1.4; }
.facts dd { margin: 0 0 .1rem; font-size: 1.2rem; font-weight: 650; line-height: 1.3; font-variant-numeric: tabular-nums; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; list-style: none; padding: 0; margin: 1rem 0; font-size: .92rem; }
.wide { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: .4rem 1rem .4rem 0; border-bottom: 1px solid var(--line); }
td, tbody th { min-width: 4.5rem; } tbody th { font-weight: 400; min-width: 12rem; }
thead th { color: var(--soft); font-weight: 600; font-size: .84rem; vertical-align: bottom; overflow-wrap: normal; }
td.n, th.n { text-align: right; } td.n, td.t { white-space: nowrap; } td.r { min-width: 17rem; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code.command {
  display: block; background: var(--sunk); border-radius: .3rem; padding: .35rem .6rem; margin: .35rem 0;
}
code.command span { display: inline-block; max-width: 100%; }
details { border-top: 1px solid var(--line); padding: .6rem 0; }
details + details { margin-top: 0; } summary { cursor: pointer; }
details.words { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .6rem 1.3rem; }
.words dt { font-weight: 600; margin-top: .5rem; } .words dd { margin: 0 0 .3rem; color: var(--soft); }
.legend { list-style: none; padding: 0; margin: .6rem 0 1rem; display: grid; gap: .25rem 1.4rem; font-size: .88rem;
  grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); color: var(--soft); }
.legend b { color: var(--fg); font-weight: 600; } .legend li { display: flex; gap: .6rem; }
.swatch { flex: none; width: 1.5rem; height: .95rem; margin-top: .25rem; border: 1px solid var(--line); border-radius: .15rem; }
.defs { position: absolute; }
.bar { display: block; width: 100%; height: 1.15rem; border-radius: .2rem; background: var(--unwritten); overflow: hidden; }
.whole { margin: 1rem 0 1.2rem; } .whole figcaption { font-size: .88rem; color: var(--soft); margin-bottom: .3rem; }
.whole .bar { height: 1.9rem; }
.k-message { fill: var(--message); } .k-filler { fill: var(--filler); } .k-unwritten { fill: var(--unwritten); }
.k-damaged { fill: url(#p-damaged); } .k-beyond { fill: url(#p-beyond); } .k-plausible { fill: url(#p-plausible); }
.k-unread { fill: url(#p-unread); } .k-missing { fill: url(#p-missing); }
.f-damaged { fill: var(--damaged); } .f-beyond { fill: var(--beyond); } .f-plausible { fill: var(--plausible); }
.f-unread { fill: var(--unread); } .f-missing { fill: var(--missing); } .f-mark { fill: var(--mark); }
.s-mark { stroke: var(--mark); stroke-width: 1; fill: none; opacity: .85; }
.s-line { stroke: var(--soft); stroke-width: 1; fill: none; }
#p-beyond .s-mark { stroke: var(--dark-mark); opacity: .55; }
.cut { stroke: var(--fg); stroke-width: 2.5; }
.segments { list-style: none; padding: 0; margin: .6rem 0; }
.segments li {
  display: grid; grid-template-columns: 13.5rem 1fr; gap: .15rem 1rem; align-items: center; padding: .4rem 0;
  border-bottom: 1px solid var(--line);
}
.segments .what { grid-column: 2; color: var(--soft); font-size: .85rem; } .segments .seg { font-size: .9rem; }
.segments .marked .what { color: var(--fg); }
.marks { list-style: none; padding: 0; margin: 0; }
.marks li { display: grid; grid-template-columns: 19rem 1fr 17rem; gap: 0 1rem; align-items: center;
  padding: .2rem 0; font-size: .9rem; }
.marks .value { grid-column: 3; grid-row: 1; color: var(--soft); font-variant-numeric: tabular-nums; }
.track { width: 100%; height: 16px; display: block; grid-column: 2; grid-row: 1; }
.axis { stroke: var(--line); stroke-width: 2; } .range, .point { fill: var(--message); } .m-cut, .m-lost { fill: var(--damaged); }
.findings { padding-left: 1.6rem; margin: .5rem 0; } .findings li { margin: .6rem 0; font-size: .92rem; }
.findings .at { display: block; color: var(--soft); } .values { display: block; }
.steps { list-style: none; padding: 0; margin: .6rem 0; }
.steps > li { border-bottom: 1px solid var(--line); padding: .45rem 0; font-size: .92rem; }
.steps details { border: 0; padding: 0; }
.steps .why { display: block; color: var(--soft); } .steps b { text-transform: capitalize; }
.next { background: var(--sunk); border-radius: .3rem; padding: .4rem .7rem; }
.plain { padding-left: 1.2rem; margin: .4rem 0; } .plain li { margin: .25rem 0; }
footer { color: var(--soft); font-size: .85rem; margin-top: 1.5rem; }
@media screen and (max-width: 50rem) {
  body { padding: 1rem .7rem 3rem; } section { padding: 1rem .9rem; } h1 { font-size: 1.35rem; }
  .answer { grid-template-columns: 1fr; } .answer .icon { width: 2rem; height: 2rem; } .answer h2 { font-size: 1.2rem; }
  dl.facts { grid-template-columns: 1fr 1fr; } .facts dd { font-size: 1.05rem; }
  .segments li { grid-template-columns: 1fr; } .segments .what { grid-column: 1; }
  .marks li { grid-template-columns: 1fr; padding: .45rem 0; }
  .marks .label, .marks .value, .track { grid-column: 1; grid-row: auto; } .marks .value { margin-top: -.1rem; }
  .stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .stack table, .stack tbody, .stack tr, .stack th, .stack td { display: block; width: 100%; text-align: left; }
  .stack tr { border-bottom: 1px solid var(--line); padding: .6rem 0; } .stack th, .stack td { border: 0; padding: .1rem 0; }
  .stack td.n, .stack td.t { white-space: normal; } .stack td.r { min-width: 0; }
  .stack td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
  .stack td:empty { display: none; }
}
@media print {
  :root {
    color-scheme: light;
    --bg: #fff; --card: #fff; --fg: #000; --soft: #444; --line: #bbb; --sunk: #f2f2f2; --link: #000;
    --stop: #8f1009; --stop-bg: #fff; --care: #6b4000; --care-bg: #fff; --safe: #0d5229; --safe-bg: #fff; --unknown: #333;
    --unknown-bg: #fff; --message: #7fa8d1; --filler: #a9b4c2; --unwritten: #eceff3; --beyond: #f0b44c; --damaged: #c5352b;
    --plausible: #a88bcf; --unread: #8b95a3; --missing: #fff; --mark: #fff; --dark-mark: #5b3d00;
  }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  @page { margin: 14mm; }
  html { font-size: 11px; } body { max-width: none; padding: 0; font-size: 1rem; }
  .marks li { grid-template-columns: 15rem 1fr 16rem; } .segments li { grid-template-columns: 12rem 1fr; }
  nav { display: none; }
  section { border-width: 1px 0 0; border-radius: 0; padding: .6rem 0; }
  .answer { border: 2px solid var(--line); padding: .6rem; }
  h2, h3, summary { break-after: avoid; } tr, .segments li, .marks li, .findings li, .facts div { break-inside: avoid; }
  .wide { overflow: visible; } th, td { padding-right: .5rem; }
  td, tbody th, td.r { min-width: 0; } td.n { white-space: normal; } details { break-inside: auto; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
"""

"""The style sheet of report.html: light, dark, phone and paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --bg: #fff; --fg: #1c2430; --faint: #5d6878; --line: #d9dfe7; --card: #f5f7fa;
  --loss: #b3261e; --rebuildable: #8a5000; --note: #5d6878; --good: #1b6e3c;
  --message: #4a86c5; --beyond: #d98a2b; --plausible: #9467bd; --damaged: #c8322a; --filler: #aeb8c4; --unwritten: #e6eaef;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #14181e; --fg: #e4e8ee; --faint: #98a4b3; --line: #323a45; --card: #1c222a;
    --loss: #ff8a80; --rebuildable: #ffb74d; --note: #98a4b3; --good: #7bd29a;
    --message: #5b9bd8; --beyond: #e09a45; --plausible: #b08be0; --damaged: #ef6259; --filler: #5a6470; --unwritten: #2a313a;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 72rem; background: var(--bg); color: var(--fg);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; line-height: 1.3; margin: .2rem 0 1rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.faint { color: var(--faint); } .loss { color: var(--loss); } .rebuildable { color: var(--rebuildable); }
.note { color: var(--note); } .good { color: var(--good); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .8rem; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; }
.facts b { display: block; font-size: 1.15rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); }
td { min-width: 3.5rem; } th { color: var(--faint); font-weight: 600; } td.n, th.n { text-align: right; }
code { font: .9em ui-monospace, monospace; }
.bar { display: flex; height: 1.1rem; min-width: 16rem; border-radius: .2rem; overflow: hidden; background: var(--unwritten); }
.bar i { display: block; height: 100%; }
.k-message { background: var(--message); } .k-beyond { background: var(--beyond); } .k-plausible { background: var(--plausible); }
.k-damaged { background: var(--damaged); } .k-filler { background: var(--filler); } .k-unwritten { background: var(--unwritten); }
.key i { display: inline-block; width: .9em; height: .9em; border-radius: .15em; margin: 0 .35em 0 1em; vertical-align: -.1em; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: .5rem .9rem; }
summary { cursor: pointer; }
@media print { details { break-inside: avoid; } .wide { overflow: visible; } .bar i { print-color-adjust: exact; } }
"""

"""The look of a page: light or dark as the reader's system is, wide, narrow or printed."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fcfcfb; --card: #ffffff; --ink: #1d2126; --faint: #5f666e; --line: #dfe2e5;
  --kept: #2b6cb0; --dropped: #d9791f; --lost: #8e8e93; --mark: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1c2024; --ink: #e4e7ea; --faint: #9aa3ab; --line: #333a40;
    --kept: #6aa9e9; --dropped: #eca25a; --lost: #84898f; --mark: #ff8a80;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem;
  background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC",
    "Noto Sans CJK SC", "Microsoft YaHei", sans-serif;
}
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 .4rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p { margin: .4rem 0; }
a { color: var(--kept); }
code, .id { font: .87em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.about, .faint, .note, dt { color: var(--faint); }
.about { max-width: 48rem; }
.note { font-size: .87rem; }
.warn { border-left: 3px solid var(--dropped); padding: .1rem 0 .1rem .8rem; margin: .7rem 0; }
nav { margin: 1.1rem 0 0; font-size: .9rem; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .7rem;
  margin: 1.3rem 0 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .65rem .9rem; }
.tile b { display: block; font-size: 1.35rem; font-weight: 650; line-height: 1.25; }
.tile span { color: var(--faint); font-size: .85rem; }

.wide { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  font-size: .92rem; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: normal; }
td:not(.n) { min-width: 6.5rem; max-width: 24rem; overflow-wrap: break-word; }
th { color: var(--faint); font-weight: 500; font-size: .85rem; white-space: nowrap; }
td.n, th.n { text-align: right; white-space: nowrap; padding-left: .7rem; padding-right: 0; }
tfoot td { font-weight: 650; border-bottom: 0; }
.bar { display: block; width: 100%; min-width: 7rem; height: .8em; margin-top: .35em;
  background: var(--line); border-radius: 2px; overflow: hidden; }
.bar span { display: block; height: 100%; }
.stack { display: flex; height: 1.1rem; border-radius: 3px; overflow: hidden; margin: .5rem 0;
  background: var(--line); }
.key { display: inline-block; width: .75em; height: .75em; border-radius: 2px;
  margin: 0 .35em 0 .9em; }
.key:first-child { margin-left: 0; }
span.kept, span.plain { background: var(--kept); }
span.dropped { background: var(--dropped); }
span.lost { background: var(--lost); }

dl { display: grid; grid-template-columns: minmax(6rem, max-content) minmax(0, 1fr);
  gap: .2rem 1.2rem; margin: .6rem 0; font-size: .92rem; }
dd { margin: 0; }

.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr));
  gap: .9rem; margin: .8rem 0; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: .7rem .8rem .6rem; min-width: 0; }
figcaption { font-weight: 600; font-size: .92rem; }
figure p { font-size: .8rem; color: var(--faint); margin: .25rem 0 0; line-height: 1.4; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 10px system-ui, sans-serif; fill: var(--faint); }
svg .kept { fill: var(--kept); }
svg .dropped { fill: var(--dropped); }
svg .axis { stroke: var(--faint); stroke-width: .7; }
svg .gap { stroke: var(--card); stroke-width: 2.5; }
svg .mark { stroke: var(--mark); stroke-width: 1.2; stroke-dasharray: 4 2; }
svg text.mark { fill: var(--mark); stroke: none; font-weight: 600; }

details { margin: .35rem 0; }
summary { cursor: pointer; }
details.example { border: 1px solid var(--line); border-radius: 6px; background: var(--card);
  padding: .35rem .7rem; }
details.example > summary { display: flex; gap: .1rem .8rem; flex-wrap: wrap;
  align-items: baseline; font-size: .87rem; }
.first { flex: 1 1 100%; min-width: 0; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
details.example[open] .first { display: none; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; font-size: .92rem;
  margin: .5rem 0; padding: .6rem .8rem; border-left: 3px solid var(--line); }
.text.raw { font: .82rem/1.5 ui-monospace, Menlo, Consolas, monospace; }

@media print {
  body { padding: 0; max-width: none; font-size: 10.5pt; }
  nav { display: none; }
  figure, tr, .tile, details.example { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""

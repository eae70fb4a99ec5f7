// The report's style and frame. Everything is inline: it opens from a disk, without a network, in light and dark.
#include "apps/report_page.h"

namespace skein::apps {

const char kReportPage[] = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{TITLE}}</title>
<style>
:root {
  --page: #f6f7f9; --card: #ffffff; --line: #e3e6eb; --ink: #1c2330; --soft: #667085; --faint: #98a2b3;
  --a: #2563eb; --b: #ea6a1f; --c: #0f9d76; --d: #9333ea; --e: #ca8a04; --f: #64748b; --g: #db2777;
  --good: #067647; --good-bg: #dcfae6; --warn: #b54708; --warn-bg: #fef0c7;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e1117; --card: #161b24; --line: #29303c; --ink: #e6eaf0; --soft: #9aa5b5; --faint: #6b7686;
    --a: #6ea1ff; --b: #ff9a56; --c: #3ecf9e; --d: #c084fc; --e: #facc15; --f: #94a3b8; --g: #f472b6;
    --good: #75e0a7; --good-bg: #0b3a28; --warn: #fec84b; --warn-bg: #4a2c08;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
       font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 32px 24px 48px; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 14px; margin-bottom: 20px; }
h1 { font-size: 24px; line-height: 1.25; letter-spacing: -.01em; margin: 0; font-weight: 650; }
.sub { color: var(--soft); flex-basis: 100%; }
.chip { font-size: 12px; font-weight: 600; padding: 2px 10px; border-radius: 99px; align-self: center; }
.chip.finished { color: var(--good); background: var(--good-bg); }
.chip.interrupted, .chip.running { color: var(--warn); background: var(--warn-bg); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; margin-bottom: 12px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 16px 18px; }
.tile b { display: block; font-size: 24px; font-weight: 650; line-height: 1.2; letter-spacing: -.01em;
          font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile span { color: var(--soft); font-size: 12.5px; }
.tile i { font-style: normal; color: var(--faint); font-size: 12.5px; display: block; }
.bar { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: center; gap: 10px; margin: 22px 0 12px; }
.bar h2, h2 { font-size: 15px; font-weight: 620; margin: 0; }
.switch { display: inline-flex; border: 1px solid var(--line); background: var(--card); border-radius: 9px; padding: 2px; }
.switch button { all: unset; cursor: pointer; font-size: 13px; padding: 3px 13px; border-radius: 7px; color: var(--soft); }
.switch button[aria-pressed=true] { background: var(--page); color: var(--ink); font-weight: 600; }
.switch button:focus-visible { outline: 2px solid var(--a); }
.controls { display: flex; gap: 10px; flex-wrap: wrap; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 12px; }
.chart { position: relative; padding: 14px 14px 8px; }
.chart .top { display: flex; justify-content: space-between; align-items: baseline; gap: 12px; padding: 0 4px 4px; }
.chart h2 { font-size: 14px; }
.key { display: flex; flex-wrap: wrap; gap: 2px 12px; font-size: 12.5px; color: var(--soft); }
.key span::before { content: ""; display: inline-block; width: 14px; height: 3px; border-radius: 2px;
                    background: var(--tone); margin-right: 6px; vertical-align: middle; }
svg { display: block; width: 100%; height: auto; overflow: visible; touch-action: pan-y; }
svg text { fill: var(--faint); font-size: 11.5px; font-variant-numeric: tabular-nums; }
.grid { stroke: var(--line); stroke-width: 1; shape-rendering: crispEdges; }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.raw { fill: none; stroke-width: 1; opacity: .28; }
.band { opacity: .16; stroke: none; }
.mark { stroke: var(--faint); stroke-dasharray: 3 3; }
.tip { position: absolute; pointer-events: none; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
       padding: 6px 10px; font-size: 12.5px; box-shadow: 0 4px 16px rgb(0 0 0 / .14); white-space: nowrap; display: none; z-index: 1;
       font-variant-numeric: tabular-nums; }
.tip b { font-weight: 600; }
.tip div::before { content: ""; display: inline-block; width: 8px; height: 8px; border-radius: 50%; background: var(--tone);
                   margin-right: 7px; }
.split { display: flex; height: 22px; border-radius: 7px; overflow: hidden; gap: 2px; margin: 12px 0 10px; }
.split div { background: var(--tone); min-width: 2px; }
.legend { display: grid; grid-template-columns: repeat(auto-fit, minmax(215px, 1fr)); gap: 4px 28px; font-size: 13px; }
.legend div { display: flex; gap: 8px; align-items: baseline; color: var(--soft); }
.legend div::before { content: ""; width: 9px; height: 9px; border-radius: 3px; background: var(--tone); }
.legend b { color: var(--ink); font-weight: 600; margin-left: auto; font-variant-numeric: tabular-nums; }
.shard { display: grid; grid-template-columns: 6.5em 1fr 5em; gap: 12px; align-items: center; font-size: 13px; }
.shard .split { margin: 4px 0; height: 18px; background: none; }
.shard span { color: var(--soft); }
.shard b { font-weight: 600; text-align: right; font-variant-numeric: tabular-nums; }
.shards .legend { margin-top: 10px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 12px; margin-top: 12px; }
table { border-collapse: collapse; width: 100%; margin-top: 8px; font-size: 13px; }
td { padding: 4px 0; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
tr:first-child td { border-top: 0; }
td:first-child { color: var(--soft); padding-right: 18px; white-space: nowrap; width: 1%; }
footer { color: var(--faint); font-size: 12.5px; margin-top: 24px; }
@media print { .switch { display: none; } .card { break-inside: avoid; } }
</style>
</head>
<body>
<main>
<header><h1 id="title">{{TITLE}}</h1><span id="state" class="chip"></span><div id="sub" class="sub"></div></header>
<noscript><p>The curves are drawn by a script; this browser has scripts turned off.</p></noscript>
<section id="tiles" class="tiles"></section>
<div class="bar"><h2>Curves</h2><div class="controls">
<div class="switch" id="smooth" role="group" aria-label="smoothing"></div>
<div class="switch" id="scale" role="group" aria-label="scale of the loss"></div>
<div class="switch" id="axis" role="group" aria-label="horizontal axis"></div></div></div>
<section id="charts" class="charts"></section>
<section id="time"></section>
<section id="shards"></section>
<section id="facts" class="pair"></section>
<footer id="foot"></footer>
</main>
<script type="application/json" id="data">{{DATA}}</script>
<script>
{{SCRIPT}}</script>
</body>
</html>
)page";

}  // namespace skein::apps

#!/usr/bin/env python3
"""Draws the speed table of README.md: speed_plot.py README.md > tools/bench/speed.svg

One bar per network: the time of Sluice relative to that of the fastest peer. The colors are readable on light and dark pages."""

import re
import sys

ROW = re.compile(r"^\| ([^|]+) \(([^|]+)\) \| ([\d.]+) \| ([\d.]+) \|", re.M)
LEFT, TOP, STEP, SCALE, WIDTH = 250, 56, 24, 340, 760  # pixels; SCALE is the length of the peer's time


def bar(number, name, ratio):
    y, kind = TOP + number * STEP, "faster" if ratio < 1 else "slower"
    length = min(ratio * SCALE, WIDTH - LEFT - 52)  # leaves room for the number
    return (f'<text x="{LEFT - 10}" y="{y + 12}" text-anchor="end">{name}</text>\n'
            f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length:.1f}" height="16"/>\n'
            f'<text x="{WIDTH - 16}" y="{y + 12}" text-anchor="end">{ratio:.2f}</text>\n')


def draw(ratios, peer, peers):
    """A bar for each name and ratio of times. `peer` is the short name of the peers; `peers` describes them."""
    bottom = TOP + len(ratios) * STEP
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 16}" width="{WIDTH}" height="{bottom + 16}" role="img">\n'
            f'<title>Time of Sluice relative to {peer}, by network</title>\n'
            '<style>\n'
            '  text { font: 12px system-ui, sans-serif; fill: #7d8590 }\n'
            '  .title { font-size: 14px; font-weight: 600 } .faster { fill: #3f8f5b } .slower { fill: #c77d2e }\n'
            '  .line { stroke: #7d8590; stroke-dasharray: 4 3 }\n'
            '</style>\n'
            f'<text class="title" x="16" y="20">Time relative to {peers} (smaller is faster)</text>\n'
            f'<text x="{LEFT + SCALE}" y="{TOP - 14}" text-anchor="middle">{peer}</text>\n'
            + "".join(bar(number, *row) for number, row in enumerate(ratios))
            + f'<path class="line" d="M{LEFT + SCALE} {TOP - 8}V{bottom}"/>\n</svg>\n')


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as document:
        table = [(f"{name} ({batch})", float(ours) / float(theirs)) for name, batch, ours, theirs in ROW.findall(document.read())]
    sys.stdout.write(draw(table, "the fastest peer", "the fastest peer"))

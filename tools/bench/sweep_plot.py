"""The plot of tools/bench/placement_sweep: the time of a step over the link's speed, both logarithmic, one panel per
cap."""

import math

WIDTH, LEFT, RIGHT = 760, 64, 36
TOP, PANEL_HEIGHT, PLOT_HEIGHT = 76, 336, 250

STYLE = """
  svg { --back: #ffffff; --text: #1a2130; --muted: #667085; --grid: #e3e6ec;
        --cpu: #4269d0; --acc: #d9631e; --cut: #2f9e44; --chosen: #f2c94c }
  @media (prefers-color-scheme: dark) {
    svg { --back: #0f131a; --text: #e7eaf0; --muted: #97a1b3; --grid: #2a3140;
          --cpu: #86a5ff; --acc: #ff9d5c; --cut: #69db7c; --chosen: #8a6d1b }
  }
  text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--text) }
  .muted { fill: var(--muted) } .title { font-size: 15px; font-weight: 600 } .heading { font-weight: 600 }
  .note { paint-order: stroke; stroke: var(--back); stroke-width: 4px; stroke-linejoin: round }
  .back { fill: var(--back) } .grid { stroke: var(--grid) } .crossover { stroke: var(--text); stroke-dasharray: 2 3 }
  polyline { fill: none; stroke-width: 2 } .chosen { stroke: var(--chosen); stroke-width: 9; stroke-linecap: round; stroke-linejoin: round }
  .cpu { stroke: var(--cpu) } .acc { stroke: var(--acc) } .cut { stroke: var(--cut); stroke-dasharray: 6 4 }
"""

LINES = (("cpu", "all cpu"), ("acc", "all sim:0"), ("cut", "best cut"))  # class and name in Point.lines()


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def text_at(x, y, text, style="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">{escape(text)}</text>'


def line(x0, y0, x1, y1, style):
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" class="{style}"/>'


def polyline(points, style):
    return f'<polyline class="{style}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


class LogAxis:
    """Maps [low, high] to [start, end]."""

    def __init__(self, low, high, start, end):
        self.low, self.high, self.start, self.end = low, high, start, end

    def at(self, value):
        return self.start + (self.end - self.start) * math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self):
        """Powers of ten; if there are few, also twice and five times them."""
        few = self.high / self.low < 300
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        every = [factor * 10.0**decade for decade in decades for factor in ((1, 2, 5) if few else (1,))]
        return [value for value in every if self.low * 0.999 <= value <= self.high * 1.001]


def scaled(value, unit):
    """Three digits: 5.51 MB/s."""
    size, prefix = next((scale for scale in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if value >= 0.9995 * scale[0]), (1, ""))
    return f"{value / size:.3g} {prefix}{unit}"


def time_text(ms):
    return f"{ms / 1e3:g} s" if ms >= 1e3 else f"{ms:g} ms"


def draw_legend():
    parts = []
    for i, (style, text) in enumerate((("chosen", "chosen"), *LINES)):
        x = LEFT + 8 + 110 * i
        parts += [polyline([(x, 50), (x + 24, 50)], style), text_at(x + 34, 54, text)]
    return parts


def draw_panel(heading, sweep, top, y_range):
    speeds = [point.speed for point in sweep.points]
    x = LogAxis(speeds[0], speeds[-1], LEFT, WIDTH - RIGHT)
    y = LogAxis(*y_range, top + PLOT_HEIGHT, top)
    parts = [text_at(LEFT, top - 10, heading, "heading")]
    for speed in x.ticks():
        parts.append(line(x.at(speed), top, x.at(speed), top + PLOT_HEIGHT, "grid"))
        parts.append(text_at(x.at(speed), top + PLOT_HEIGHT + 18, scaled(speed, "B/s"), "muted", "middle"))
    for ms in y.ticks():
        parts.append(line(LEFT, y.at(ms), WIDTH - RIGHT, y.at(ms), "grid"))
        parts.append(text_at(LEFT - 8, y.at(ms) + 4, time_text(ms), "muted", "end"))
    parts.append(polyline([(x.at(point.speed), y.at(point.report["predicted_ms"])) for point in sweep.points], "chosen"))
    for style, name in LINES:
        known = [(x.at(point.speed), y.at(point.lines()[name])) for point in sweep.points if point.lines()[name] is not None]
        if known:
            parts.append(polyline(known, style))
    for i, (speed, below, above) in enumerate(sweep.crossovers):
        parts.append(line(x.at(speed), top, x.at(speed), top + PLOT_HEIGHT, "crossover"))
        side, anchor = (6, "start") if x.at(speed) < 0.7 * WIDTH else (-6, "end")
        parts.append(text_at(x.at(speed) + side, top + 16 + 16 * i, f"{scaled(speed, 'B/s')}: {below} → {above}", "note", anchor))
    parts.append(text_at((LEFT + WIDTH - RIGHT) / 2, top + PLOT_HEIGHT + 38, "speed of the link", "muted", "middle"))
    return parts


def draw(title, panels):
    """SVG text; `panels` are pairs of a heading and a sweep, with its points ordered from the slowest link to the
    fastest."""
    points = [point for _, sweep in panels for point in sweep.points]
    times = [ms for point in points for ms in (*point.lines().values(), point.report["predicted_ms"]) if ms is not None]
    y_range = min(times) / 1.3, max(times) * 1.3
    height = TOP + PANEL_HEIGHT * len(panels)
    parts = [f'<rect width="{WIDTH}" height="{height}" class="back"/>']
    parts += [text_at(LEFT, 26, title + ": predicted time of a step", "title"), *draw_legend()]
    for i, (heading, sweep) in enumerate(panels):
        parts += draw_panel(heading, sweep, TOP + 24 + PANEL_HEIGHT * i, y_range)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>\n"])

// Colors: a hue per kind of group, in order of time; copies have their own. Text and line colors come from the style,
// and are read again when the color scheme changes.

const kHues = ["#4269d0", "#3ca951", "#a463f2", "#6cc5b0", "#ff8ab7", "#9c6b4e", "#97bbf5", "#c2a83e"];
const kOtherHue = "#9498a0";

class Palette {
  constructor(report) {
    const times = new Map();
    for (const group of report.groups)
      times.set(group.kind, (times.get(group.kind) ?? 0) + (group.ms || 0));
    this.kinds = [...times].sort((a, b) => b[1] - a[1]).map(([kind, ms]) => ({kind, ms}));
    this.hues = new Map(this.kinds.slice(0, kHues.length).map(({kind}, i) => [kind, kHues[i]]));
    this.readStyle();
  }

  readStyle() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue("--" + name).trim();
    for (const name of ["surface", "text", "muted", "line", "accent", "copy", "exposed", "over", "state"])
      this[name] = read(name);
  }

  of(item) {
    if (item.type === "copy")
      return item.hidden === false ? this.exposed : this.copy;
    return this.hues.get(item.kind) ?? kOtherHue;
  }
}

/// A color swatch.
function swatchOf(colour) {
  const swatch = el("span.swatch");
  swatch.style.background = colour;
  return swatch;
}

/// Black or white, whichever has more contrast on a color.
function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111827" : "#ffffff";
}

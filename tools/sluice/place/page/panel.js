// The side panel: all properties of the selected group or copy; without a selection, a summary of the time.

const kMostListed = 40;

class Panel {
  /// `select(item)` is called when the user follows a link.
  constructor(element, report, palette, select) { Object.assign(this, {element, report, palette, select}); }

  show(item) {
    const parts = item ? this.details(item) : this.overview();
    this.element.replaceChildren(...parts.filter(Boolean));
    this.element.scrollTop = 0;
  }

  details(item) {
    const own = item.type === "copy" ? this.copy(item) : this.group(item);
    return [this.heading(item), ...own, this.measured(item), ...this.neighbours(item)];
  }

  heading(item) {
    const close = el("button.close", "×");
    close.title = "close (Esc)";
    close.addEventListener("click", () => this.select(null));
    return el("header", swatchOf(this.palette.of(item)), el("h2", item.name), close);
  }

  group({json, kind, device, ms, start, end}) {
    return [
      el("p.sub", `${kind} on ${this.report.textOf(device)}`),
      reasonOf(json.reason),
      facts([
        ["time", timeText(ms)], ["in the step", isNumber(start) ? `${timeText(start)} to ${timeText(end)}` : null],
        ["source", json.source]
      ]),
      el("h3", "On each device"),
      this.timesOf(json.ms ?? {}, device),
      el("h3", countText((json.ops ?? []).length, "op")),
      el("p.ops", countedOps(json.ops ?? [])),
    ];
  }

  timesOf(ms, chosen) {
    const most = Math.max(...Object.values(ms).map((value) => value ?? 0), 1e-12);
    return el("div", ...Object.entries(ms).map(([device, value]) => {
      const bar = meter((value ?? 0) / most, device === chosen ? "chosen" : "other");
      return barLine(this.report.textOf(device), bar, isNumber(value) ? timeText(value) : "cannot run");
    }));
  }

  copy({json, bytes, ms, hidden, start, end}) {
    const when = {step: "in every step", stale: "when its source has changed", asked: "when asked for"}[json.when] ??
                 json.when;
    return [
      el("p.sub", `copy, ${this.report.textOf(json.from)} → ${this.report.textOf(json.to)}`),
      reasonOf(json.reason),
      facts([
        ["bytes", `${bytesText(bytes)} (${Number(bytes).toLocaleString("en")})`], ["time", timeText(ms)],
        ["speed", ms > 0 ? rateText(bytes / (ms * 1e-3)) : null], ["made", when],
        ["hidden", hidden === undefined ? null
                   : hidden             ? "yes, behind work"
                                        : "no, the step waits for it"],
        ["in the step", isNumber(start) ? `${timeText(start)} to ${timeText(end)}` : null], ["source", json.source]
      ]),
    ];
  }

  measured(item) {
    if (!item.ran)
      return null;
    return el("div", el("h3", "Measured"), facts([
                ["time", `${timeText(item.ran.ms)}, ${ratioText(ratioOf(item))} predicted`],
                ["in the step", `${timeText(item.ran.start)} to ${timeText(item.ran.end)}`], ["queue", item.ran.queue]
              ]));
  }

  neighbours({reads, readers}) {
    const listUnder = (heading, items) => items.length > 0 && el("div", el("h3", heading), this.list(items));
    return [listUnder("Reads", reads), listUnder("Read by", readers)];
  }

  list(items) {
    const list = el("ul.items", ...items.slice(0, kMostListed).map((item) => {
      const size = item.type === "copy" ? bytesText(item.bytes) : timeText(item.ms);
      return el("li", swatchOf(this.palette.of(item)), link(item.name, () => this.select(item)),
                el("span.number", size));
    }));
    if (items.length > kMostListed)
      list.append(el("li.more", `and ${(items.length - kMostListed).toLocaleString("en")} more`));
    return list;
  }

  overview() {
    const longest = (items) => [...items].sort((a, b) => (b.ms || 0) - (a.ms || 0)).slice(0, 8);
    const exposed = longest(this.report.stepCopies().filter((copy) => copy.hidden === false));
    return [
      el("header", el("h2", "Where the time goes")),
      el("p.sub", "Click a bar or a line for its details."),
      el("h3", "Longest groups"),
      this.list(longest(this.report.groups)),
      ...(exposed.length > 0 ? [el("h3", "Copies that the step waits for"), this.list(exposed)] : []),
    ];
  }
}

function reasonOf(reason) { return reason ? el("blockquote", reason) : null; }

function facts(entries) {
  return el("dl",
            ...entries.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", name), el("dd", value)]));
}

/// "sluice.conv2d, sluice.add ×2".
function countedOps(ops) {
  const counts = new Map();
  for (const op of ops)
    counts.set(op, (counts.get(op) ?? 0) + 1);
  return [...counts].map(([op, count]) => (count > 1 ? `${op} ×${count}` : op)).join(", ");
}

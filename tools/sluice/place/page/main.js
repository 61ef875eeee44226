// Combines the views: one selection, one time axis, one filter.

class Page {
  constructor(report) {
    const at = (id) => document.getElementById(id);
    this.report = report;
    this.palette = new Palette(report);
    this.axis = new TimeAxis(report.span);
    const select = (item) => this.select(item);
    drawHeadline(report, at("title"), at("headline"));
    this.lanes = new Swimlanes(at("lanes"), at("lane-labels"), report, this.axis, this.palette);
    this.drawLegend(at("legend"));
    this.memory = new MemoryCharts(at("memory"), at("memory-labels"), report, this.axis, this.palette);
    this.measured = report.matching ? new MeasuredView(at("measured"), report, this.palette, select) : null;
    this.tables = [...makeTables(report, select), ...(this.measured?.tables ?? [])];
    this.panel = new Panel(at("panel"), report, this.palette, select);
    this.panel.show(null);
    this.tip = at("tip");
    this.axis.listeners.push(() => this.redraw());
    this.listenToLanes(this.lanes.canvas);
    this.listenToOthers(at);
    this.resize();
  }

  drawLegend(legend) {
    const entry = (colour, ...text) => el("span.entry", swatchOf(colour), ...text);
    const known = this.palette.kinds.filter(({kind}) => this.palette.hues.has(kind));
    const others = this.palette.kinds.length - known.length;
    legend.append(
        ...known.map(({kind, ms}) => entry(this.palette.hues.get(kind), clipped(kind), el("small", timeText(ms)))));
    if (others > 0)
      legend.append(entry(kOtherHue, countText(others, "other kind")));
    if (this.report.copies.length > 0)
      legend.append(entry(this.palette.copy, "copy"), entry(this.palette.exposed, "copy that the step waits for"));
    if (this.report.matching)
      legend.append(el("span.entry", "below, paler: measured"));
    legend.append(...this.lanes.ends().map(({colour, name}) => entry(colour, name)));
  }

  resize() {
    const {canvas} = this.lanes;
    this.axis.width = Math.max(200, canvas.parentElement.clientWidth - canvas.offsetLeft);
    this.palette.readStyle();
    this.measured?.draw();
    this.redraw();
  }

  /// Draws once before the next frame, however many requests there are.
  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.lanes.draw();
      this.memory.draw();
    });
  }

  select(item) {
    this.lanes.selected = item;
    this.panel.show(item);
    for (const table of this.tables)
      table.mark(item);
    const box = item && this.lanes.boxOf(item);
    if (box && (box.left + box.width < 0 || box.left > this.axis.width))
      this.centre(item);
    this.redraw();
  }

  /// Scrolls to an item, at the same zoom.
  centre(item) {
    const middle = isTimed(item) ? (item.start + item.end) / 2 : (item.ran.start + item.ran.end) / 2;
    this.axis.pan(middle - (this.axis.start + this.axis.end) / 2);
  }

  hover(item, event) {
    if (this.lanes.hovered !== item) {
      this.lanes.hovered = item;
      this.redraw();
    }
    this.showTip(item && this.tipOf(item), event);
  }

  tipOf(item) {
    const {name, kind, device, bytes, ms, ran, json} = item;
    const textOf = (name) => this.report.textOf(name);
    const what = item.type === "copy" ? `${bytesText(bytes)}, ${textOf(json.from)} → ${textOf(json.to)}`
                                      : `${clipped(kind)} on ${textOf(device)}`;
    const measured = ran ? `measured ${timeText(ran.ms)}, ${ratioText(ratioOf(item))}` : null;
    return [el("b", clipped(name)), `${what}, ${timeText(ms)}`, measured, clipped(json.reason)];
  }

  showTip(lines, event) {
    this.tip.hidden = !lines;
    if (!lines)
      return;
    this.tip.replaceChildren(...lines.filter(Boolean).map((line) => el("div", line)));
    const {offsetWidth: width, offsetHeight: height} = this.tip;
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 8);
    const below = event.clientY + 20 + height <= window.innerHeight;
    this.tip.style.left = Math.max(4, left) + "px";
    this.tip.style.top = (below ? event.clientY + 18 : event.clientY - height - 10) + "px";
  }

  listenToLanes(canvas) {
    let grip = null; // start of a drag
    const itemAt = (event) => this.lanes.itemAt(event.offsetX, event.offsetY);
    canvas.addEventListener("pointerdown", (event) => {
      grip = {x: event.offsetX, ms: this.axis.ms(event.offsetX), moved: false};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (grip && Math.abs(event.offsetX - grip.x) > 3)
        grip.moved = true;
      if (grip?.moved)
        this.axis.pan(grip.ms - this.axis.ms(event.offsetX));
      this.hover(grip?.moved ? null : itemAt(event), event);
      canvas.style.cursor = grip?.moved ? "grabbing" : this.lanes.hovered ? "pointer" : "grab";
    });
    canvas.addEventListener("pointerup", (event) => {
      if (grip && !grip.moved)
        this.select(itemAt(event));
      grip = null;
    });
    canvas.addEventListener("pointercancel", () => (grip = null));
    canvas.addEventListener("pointerleave", (event) => this.hover(null, event));
    canvas.addEventListener("dblclick", (event) => {
      const item = itemAt(event);
      if (!item)
        return this.axis.showAll();
      const [start, end] = isTimed(item) ? [item.start, item.end] : [item.ran.start, item.ran.end];
      this.axis.show(start - (end - start), end + (end - start));
    });
    canvas.addEventListener("wheel", (event) => this.wheel(event, canvas), {passive: false});
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  wheel(event, canvas) {
    const length = this.axis.end - this.axis.start;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (!sideways && !event.ctrlKey && document.activeElement !== canvas)
      return; // lets the page scroll
    event.preventDefault();
    if (sideways)
      this.axis.pan(((event.deltaX || event.deltaY) / this.axis.width) * length);
    else
      this.axis.zoom(Math.exp(Math.min(200, Math.max(-200, event.deltaY)) * 0.002), this.axis.ms(event.offsetX));
  }

  key(event) {
    const length = this.axis.end - this.axis.start;
    const action = {
      ArrowLeft: () => this.axis.pan(-length / 5),
      ArrowRight: () => this.axis.pan(length / 5),
      "+": () => this.axis.zoom(0.7),
      "=": () => this.axis.zoom(0.7),
      "-": () => this.axis.zoom(1 / 0.7),
      0: () => this.axis.showAll(),
    }[event.key];
    if (!action || event.ctrlKey || event.metaKey)
      return;
    event.preventDefault();
    action();
  }

  listenToOthers(at) {
    at("zoom-in").addEventListener("click", () => this.axis.zoom(0.5));
    at("zoom-out").addEventListener("click", () => this.axis.zoom(2));
    at("zoom-fit").addEventListener("click", () => this.axis.showAll());
    at("search").addEventListener("input", (event) => this.search(event.target.value));
    at("search").addEventListener("keydown", (event) => event.key === "Enter" && this.selectNext());
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.select(null));
    at("memory").addEventListener("pointermove", (event) => {
      const text = this.memory.textAt(event.offsetX, event.offsetY);
      this.showTip(text && [text], event);
    });
    at("memory").addEventListener("pointerleave", () => this.showTip(null));
    window.addEventListener("resize", () => this.resize());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.resize());
  }

  search(text) {
    const wanted = text.trim().toLowerCase();
    const matches = wanted ? this.report.items.filter((item) => searchText(item).includes(wanted)) : null;
    this.lanes.matches = matches && new Set(matches);
    for (const table of this.tables)
      table.filter(this.lanes.matches);
    const groups = matches?.filter(({type}) => type === "group").length;
    document.getElementById("found").textContent =
        matches ? `${countText(groups, "group")}, ${countText(matches.length - groups, "copy")}` : "";
    this.matches = matches ?? [];
    this.redraw();
  }

  /// Selects the next search result, in the order of the step.
  selectNext() {
    const next = this.matches?.[(this.matches.indexOf(this.lanes.selected) + 1) % this.matches.length];
    if (next)
      this.select(next);
  }
}

/// The searchable text of an item.
function searchText(item) {
  const {source, ops = [], from = "", to = ""} = item.json;
  return (item.searchText ??= [item.name, item.kind, source, from, to, ...ops].join("\n").toLowerCase());
}

const page = new Page(new Report(readData("report-data"), readData("measured-data")));

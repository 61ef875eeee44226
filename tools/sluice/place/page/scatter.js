// Predicted against measured time: the totals, and every kernel and copy as a point and as a table row.

const kPlotSide = 340, kPlotMargin = 46;

class MeasuredView {
  constructor(section, report, palette, select) {
    Object.assign(this, {section, report, palette, select});
    this.pairs = report.matching.pairs.filter((item) => item.ms > 0 && item.ran.ms > 0);
    section.hidden = false;
    this.tables = [];
    if (this.pairs.length === 0) {
      section.append(el("h2", "Predicted against measured"), this.totals());
      return;
    }
    this.canvas = el("canvas");
    this.canvas.style.width = kPlotSide + "px";
    this.canvas.setAttribute("aria-label", "measured over predicted time of each kernel and copy");
    section.append(el("h2", "Predicted against measured"),
                   el("div.pair", this.canvas, el("div.totals", this.totals(), this.notes())));
    const times = this.pairs.flatMap((item) => [item.ms, item.ran.ms]);
    this.low = Math.log10(times.reduce((a, b) => Math.min(a, b), Infinity)) - 0.15;
    this.high = Math.log10(times.reduce((a, b) => Math.max(a, b), 0)) + 0.15;
    this.canvas.addEventListener("click", (event) => select(this.itemAt(event.offsetX, event.offsetY)));
    this.tables.push(
        new VirtualTable(section, "Each kernel and copy", report.matching.pairs,
                         [
                           textColumn("name", "minmax(120px, 2fr)", (item) => item.name),
                           textColumn("queue", "90px", (item) => item.ran.queue),
                           numberColumn("predicted", "100px", (item) => item.ms, timeText),
                           numberColumn("measured", "100px", (item) => item.ran.ms, timeText),
                           numberColumn("off by", "100px", (item) => Math.abs(item.ran.ms - item.ms), timeText),
                           numberColumn("ratio", "80px", ratioOf, ratioText),
                         ],
                         {sortBy: 4, select}));
  }

  totals() {
    const {json, measured, matching, devices} = this.report;
    const rows = [["step", json.predicted_ms, measured.measured_ms]];
    const addSums = (name, wanted) => {
      const items = matching.pairs.filter(wanted);
      if (items.length > 0)
        rows.push([name, sum(items, (item) => item.ms), sum(items, (item) => item.ran.ms)]);
    };
    for (const {name} of devices)
      addSums("work on " + this.report.textOf(name), (item) => item.type === "group" && item.device === name);
    addSums("copies", (item) => item.type === "copy");
    const table = el("table", el("tr", el("th", ""), el("th", "predicted"), el("th", "measured"), el("th", "ratio")));
    for (const [name, predicted, ran] of rows)
      table.append(el("tr", el("td", name), el("td.number", timeText(predicted)), el("td.number", timeText(ran)),
                      el("td.number", predicted > 0 ? ratioText(ran / predicted) : "")));
    return table;
  }

  notes() {
    const {matching, groups} = this.report;
    const within = this.pairs.filter((item) => Math.abs(ratioOf(item) - 1) <= 0.25).length;
    const unmeasured = groups.filter((group) => !group.ran).length;
    return el("p.sub",
              `${within.toLocaleString("en")} of ${
                  this.pairs.length.toLocaleString("en")} within 25 % of what was predicted (the band). ` +
                  `${matching.pairs.length.toLocaleString("en")} of ${
                      countText(matching.total, "measured piece")} of work are in the report.` +
                  (unmeasured > 0 ? ` ${countText(unmeasured, "group")} of the report have no measured time.` : ""));
  }

  place(ms) { return ((Math.log10(ms) - this.low) / (this.high - this.low)) * (kPlotSide - kPlotMargin); }

  pointOf(item) { return {x: kPlotMargin + this.place(item.ms), y: kPlotSide - kPlotMargin - this.place(item.ran.ms)}; }

  draw() {
    const {palette} = this;
    if (this.pairs.length === 0)
      return;
    const context = prepareCanvas(this.canvas, kPlotSide, kPlotSide);
    this.drawFrame(context);
    context.globalAlpha = this.pairs.length > 500 ? 0.5 : 0.8;
    for (const item of this.pairs) {
      const {x, y} = this.pointOf(item);
      context.fillStyle = palette.of(item);
      context.beginPath();
      context.arc(x, y, this.pairs.length > 500 ? 2.5 : 4, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  drawFrame(context) {
    const {palette} = this;
    const side = kPlotSide - kPlotMargin;
    context.font = "11px " + kTextFont;
    for (let power = Math.ceil(this.low); power <= this.high; ++power) {
      const at = this.place(10 ** power);
      context.fillStyle = palette.line;
      context.fillRect(kPlotMargin + at, 0, 1, side);
      context.fillRect(kPlotMargin, side - at, side, 1);
      context.fillStyle = palette.muted;
      const text = timeText(10 ** power).replace(/\.0+ /, " ");
      context.textAlign = "center";
      context.fillText(text, kPlotMargin + at, side + 14);
      context.textAlign = "right";
      context.fillText(text, kPlotMargin - 5, side - at);
    }
    context.textAlign = "left";
    context.fillText("predicted →", kPlotMargin, side + 32);
    context.fillText("measured ↑", 2, 10);
    context.save();
    context.beginPath();
    context.rect(kPlotMargin, 0, side, side);
    context.clip();
    const band = (Math.log10(1.25) / (this.high - this.low)) * side;
    context.strokeStyle = context.fillStyle = palette.accent;
    context.beginPath();
    context.moveTo(kPlotMargin, side);
    context.lineTo(kPlotMargin + side, 0);
    context.stroke();
    context.globalAlpha = 0.12;
    context.beginPath();
    for (const [x, y] of [[0, side - band], [side, -band], [side, band], [0, side + band]])
      context.lineTo(kPlotMargin + x, y);
    context.fill();
    context.restore();
  }

  itemAt(x, y) {
    let best = null, bestDistance = 8;
    for (const item of this.pairs) {
      const point = this.pointOf(item);
      const distance = Math.hypot(point.x - x, point.y - y);
      if (distance < bestDistance)
        [best, bestDistance] = [item, distance];
    }
    return best;
  }
}

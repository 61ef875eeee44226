// The swimlanes: a canvas with a lane per queue, in which a step's groups and copies are bars over time. With a
// measured run each lane has a second, lower part. Only the visible part is drawn, and bars within one pixel are drawn
// once.

const kRulerHeight = 24, kLaneGap = 10;
const kBarHeights = {
  work: [30, 22, 15, 11],
  copies: [16, 12, 9, 7]
}; // by the number of rows in a lane
const kRanHeights = {
  work: 14,
  copies: 8
};
const kMostArrows = 300; // limit of visible copies: more arrows would hide the bars

/// Sizes a canvas to its displayed size in device pixels, and clears it.
function prepareCanvas(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + "px";
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function drawTicks(context, axis, palette, height, withText) {
  context.font = "11px " + kTextFont;
  context.textBaseline = "middle";
  for (const [ms, text] of axis.ticks()) {
    const x = Math.round(axis.x(ms)) + 0.5;
    context.fillStyle = palette.line;
    context.fillRect(x, withText ? kRulerHeight - 6 : 0, 1, height);
    context.fillStyle = palette.muted;
    if (withText && x + 4 + context.measureText(text).width <= axis.width)
      context.fillText(text, x + 4, kRulerHeight / 2 - 2);
  }
}

const kTextFont = "system-ui, sans-serif",
      kLabelFont = "11px ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace";

class Swimlanes {
  constructor(canvas, labels, report, axis, palette) {
    Object.assign(this, {canvas, report, axis, palette});
    this.selected = this.hovered = this.matches = null;
    this.shown = [];            // visible rows of bars, with their positions
    this.places = new Map();    // by item: [y, height]
    this.laneBoxes = new Map(); // by queue: {top, height}
    this.height = kRulerHeight;
    for (const lane of report.lanes)
      this.placeLane(lane, labels);
    this.height += 4;
    const context = canvas.getContext("2d");
    context.font = kLabelFont;
    this.letter = context.measureText("0").width;
  }

  placeLane(lane, labels) {
    const kind = lane.isDevice ? "work" : "copies";
    const top = this.height;
    const heights = kBarHeights[kind];
    const height = heights[Math.max(0, lane.predicted.rows.length - 1)];
    const place = (rows, row, height, ran) => {
      this.shown.push({rows, row, y: this.height, height, ran});
      for (const item of row.items)
        if (!ran || !this.places.has(item))
          this.places.set(item, [this.height, height]);
      this.height += height + 2;
    };
    for (const row of lane.predicted.rows)
      place(lane.predicted, row, height, false);
    if (lane.predicted.rows.length === 0)
      this.height += heights[0] + 2;
    for (const row of lane.ran.rows)
      place(lane.ran, row, kRanHeights[kind], true);
    this.laneBoxes.set(lane.queue, {top, height: this.height - top - 2});
    labels.append(this.label(lane, kind, top, this.height - top - 2));
    this.height += kLaneGap - (lane.isDevice ? 0 : 4);
  }

  label(lane, kind, top, height) {
    const [device, direction] = [this.report.textOf(lane.device), lane.queue.slice(lane.device.length + 1)];
    const busy = percentText(lane.predicted.busy() / this.report.span) + (lane.isDevice ? " busy" : "");
    const name = {"": el("b", device), in : "→ " + device, out: device + " →"}[direction] ?? lane.queue;
    const label = el("div.lane." + kind, name, el("small", busy));
    label.dataset.queue = lane.queue;
    label.style.top = top + "px";
    label.style.height = height + "px";
    return label;
  }

  draw() {
    const began = performance.now();
    const {axis, palette} = this;
    const context = prepareCanvas(this.canvas, axis.width, this.height);
    drawTicks(context, axis, palette, this.height, true);
    const ends = this.ends();
    for (const {ms, colour} of ends)
      this.drawEnd(context, axis.x(ms), colour);
    context.font = kLabelFont;
    for (const shown of this.shown) {
      if (this.matches)
        this.drawRow(context, shown, (item) => !this.matches.has(item), 0.12);
      this.drawRow(context, shown, (item) => !this.matches || this.matches.has(item), shown.ran ? 0.62 : 1);
    }
    this.drawArrows(context);
    for (const item of [this.hovered, this.selected])
      if (item)
        this.outline(context, item, item === this.selected ? 2 : 1);
    for (const end of ends)
      this.drawEndLabel(context, end);
    const now = performance.now();
    this.drawMs = now - began;
    this.firstDrawn ??= now;
  }

  /// The marked ends of the step: their times and labels. The measured label is at the bottom, because the two are
  /// close.
  ends() {
    const {json, measured} = this.report;
    const all = [
      {ms: json.predicted_ms, name: "predicted end", colour: this.palette.accent, y: kRulerHeight / 2 - 2},
      {ms: measured?.measured_ms, name: "measured end", colour: this.palette.over, y: this.height - 6}
    ];
    return all.filter(({ms}) => isNumber(ms)).map((end) => ({...end, text: `${end.name} ${timeText(end.ms)}`}));
  }

  drawEndLabel(context, {ms, text, colour, y}) {
    context.font = "11px " + kTextFont;
    context.textBaseline = "middle";
    const width = context.measureText(text).width, left = this.axis.x(ms) - 4 - width;
    context.fillStyle = this.palette.surface; // covers the ruler's numbers
    context.fillRect(left - 3, y - 7, width + 5, 14);
    context.fillStyle = colour;
    context.fillText(text, left, y);
  }

  drawEnd(context, x, colour) {
    context.fillStyle = colour;
    context.fillRect(Math.round(x), kRulerHeight - 8, 1.5, this.height);
  }

  drawRow(context, {rows, row, y, height, ran}, wanted, opacity) {
    const {axis, palette} = this;
    let drawnTo = -1; // last pixel with a bar
    context.globalAlpha = opacity;
    rows.visit(row, axis.start, axis.end, (item) => {
      if (!wanted(item))
        return;
      const left = Math.max(-2, axis.x(rows.startOf(item)));
      const right = Math.min(axis.width + 2, Math.max(axis.x(rows.endOf(item)), left + 1));
      if (Math.floor(right) <= drawnTo)
        return;
      drawnTo = Math.floor(right);
      const width = right - left > 3 ? right - left - 1 : right - left;
      const colour = palette.of(item);
      context.fillStyle = colour;
      context.fillRect(left, y, width, height);
      const letters = Math.floor((width - 8) / this.letter);
      if (letters >= 3 && height >= 11)
        this.drawText(context, item, colour, left, y + height / 2 + 0.5, letters);
    });
    context.globalAlpha = 1;
  }

  drawText(context, item, colour, left, y, letters) {
    const text = item.type === "copy" ? bytesText(item.bytes) : item.name;
    context.fillStyle = inkOn(colour);
    context.textBaseline = "middle";
    context.fillText(text.length <= letters ? text : text.slice(0, letters - 1) + "…", left + 4, y,
                     letters * this.letter);
  }

  drawArrows(context) {
    const visible = this.report.copies.filter((copy) => isTimed(copy) && copy.end >= this.axis.start &&
                                                        copy.start <= this.axis.end);
    if (visible.length <= kMostArrows)
      for (const copy of visible)
        if (!this.matches || this.matches.has(copy))
          drawEdges(context, this, copy, {colour: this.palette.of(copy), opacity: 0.45, width: 1});
    for (const item of [this.hovered, this.selected])
      if (item)
        drawEdges(context, this, item, {colour: this.palette.text, opacity: 0.75, width: 1.5});
  }

  outline(context, item, width) {
    const box = this.boxOf(item);
    if (!box)
      return;
    context.strokeStyle = this.palette.text;
    context.lineWidth = width;
    context.strokeRect(box.left - 1, box.top - 1, box.width + 1, box.height + 2);
  }

  /// The box of an item on the canvas; null if it has no time in the step.
  boxOf(item) {
    const place = this.places.get(item);
    if (!place)
      return null;
    const [start, end] = isTimed(item) ? [item.start, item.end] : [item.ran.start, item.ran.end];
    const left = this.axis.x(start);
    return {left, top: place[0], width: Math.max(1, this.axis.x(end) - left), height: place[1]};
  }

  /// The item at a position on the canvas, or the nearest within three pixels.
  itemAt(x, y) {
    const shown = this.shown.find((shown) => y >= shown.y - 1 && y <= shown.y + shown.height + 1);
    if (!shown)
      return null;
    const {rows, row} = shown, ms = this.axis.ms(x);
    let best = null, bestDistance = this.axis.ms(x + 3) - ms;
    rows.visit(row, ms - bestDistance, ms + bestDistance, (item) => {
      const distance = Math.max(0, rows.startOf(item) - ms, ms - rows.endOf(item));
      if (!best || distance < bestDistance)
        [best, bestDistance] = [item, distance];
    });
    return best;
  }
}

// Memory of each device over the step: states at the bottom, the step's transient memory above, and the cap as a line.

const kChartHeight = 66, kChartGap = 10;

class MemoryCharts {
  constructor(canvas, labels, report, axis, palette) {
    Object.assign(this, {canvas, report, axis, palette});
    this.charts =
        report.devices.filter(({name}) => report.json.memory?.[name]).map((device) => this.chart(report, device));
    this.height = this.charts.length * (kChartHeight + kChartGap);
    this.charts.forEach((chart, i) => labels.append(this.label(chart, i * (kChartHeight + kChartGap))));
    canvas.parentElement.hidden = this.charts.length === 0;
  }

  chart(report, {name, cap_bytes}) {
    const {state_bytes = 0, steps = []} = report.json.memory[name];
    const most = steps.reduce((most, [, bytes]) => Math.max(most, bytes), 0);
    const peak = report.json.peak_bytes?.[name] ?? state_bytes + most;
    const cap = isNumber(cap_bytes) ? cap_bytes : null;
    const top = 1.08 * Math.max(peak, state_bytes + most, cap !== null && cap < 3 * peak ? cap : 0, 1);
    return {name, state: state_bytes, steps, peak, cap, top};
  }

  label({name, peak, cap, state}, top) {
    const label = el("div.lane.chart", el("b", this.report.textOf(name)), el("small", "peak " + bytesText(peak)),
                     el("small", "state " + bytesText(state)),
                     cap === null ? null : el("small", `cap ${bytesText(cap)} (${percentText(peak / cap)})`));
    label.style.top = top + "px";
    label.style.height = kChartHeight + "px";
    return label;
  }

  draw() {
    if (this.charts.length === 0)
      return;
    const context = prepareCanvas(this.canvas, this.axis.width, this.height);
    drawTicks(context, this.axis, this.palette, this.height, false);
    this.charts.forEach((chart, i) => this.drawChart(context, chart, i * (kChartHeight + kChartGap)));
  }

  drawChart(context, chart, y) {
    const {palette, axis} = this;
    const bottom = y + kChartHeight, scale = kChartHeight / chart.top;
    context.fillStyle = palette.state;
    const left = Math.max(0, axis.x(0)), right = Math.min(axis.width, axis.x(axis.span));
    context.fillRect(left, bottom - chart.state * scale, right - left, chart.state * scale);
    context.fillStyle = palette.accent;
    context.globalAlpha = 0.75;
    context.beginPath();
    context.moveTo(left, bottom - chart.state * scale);
    this.columns(chart, left, right).forEach((bytes, i) => {
      const height = bottom - (chart.state + bytes) * scale;
      context.lineTo(left + i, height);
      context.lineTo(left + i + 1, height);
    });
    context.lineTo(right, bottom - chart.state * scale);
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = palette.line;
    context.fillRect(0, bottom, axis.width, 1);
    if (chart.cap !== null && chart.cap <= chart.top) {
      context.fillStyle = palette.exposed;
      for (let x = 0; x < axis.width; x += 9)
        context.fillRect(x, bottom - chart.cap * scale, 5, 1.5);
    }
  }

  /// The maximum bytes in the time of each pixel from `left` to `right`.
  columns({steps}, left, right) {
    const columns = new Float64Array(Math.max(0, Math.ceil(right - left)));
    let next = 0, bytes = 0;
    for (let i = 0; i < columns.length; ++i) {
      const from = this.axis.ms(left + i), until = this.axis.ms(left + i + 1);
      for (; next < steps.length && steps[next][0] <= from; ++next)
        bytes = steps[next][1];
      columns[i] = bytes;
      for (; next < steps.length && steps[next][0] < until; ++next) {
        bytes = steps[next][1];
        columns[i] = Math.max(columns[i], bytes);
      }
    }
    return columns;
  }

  /// The memory of a device at a position on the canvas, or null.
  textAt(x, y) {
    const chart = this.charts[Math.floor(y / (kChartHeight + kChartGap))];
    const ms = this.axis.ms(x);
    if (!chart || ms < 0 || ms > this.axis.span)
      return null;
    const bytes = chart.steps.findLast(([from]) => from <= ms)?.[1] ?? 0;
    return `${this.report.textOf(chart.name)} at ${timeText(ms)}: ${bytesText(chart.state + bytes)}, of it ${
        bytesText(chart.state)} state`;
  }
}

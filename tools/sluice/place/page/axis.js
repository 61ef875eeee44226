// The visible part of a step's time, shared by the views.

class TimeAxis {
  constructor(span) {
    this.span = span;
    this.width = 1;
    this.listeners = [];
    this.start = -0.01 * span;
    this.end = 1.01 * span;
  }

  x(ms) { return ((ms - this.start) / (this.end - this.start)) * this.width; }

  ms(x) { return this.start + (x / this.width) * (this.end - this.start); }

  show(start, end) {
    const least = 1e-6 * this.span, most = 1.02 * this.span;
    const length = Math.min(most, Math.max(least, end - start));
    start = (start + end - length) / 2;
    this.start = Math.min(Math.max(start, -0.01 * this.span), 1.01 * this.span - length);
    this.end = this.start + length;
    for (const listener of this.listeners)
      listener();
  }

  showAll() { this.show(-0.01 * this.span, 1.01 * this.span); }

  /// `factor` below 1 zooms in; `ms` keeps its position.
  zoom(factor, ms = (this.start + this.end) / 2) {
    this.show(ms - (ms - this.start) * factor, ms + (this.end - ms) * factor);
  }

  pan(ms) { this.show(this.start + ms, this.end + ms); }

  /// Round times at least 90 pixels apart, as [ms, text].
  ticks() {
    const wanted = (90 / this.width) * (this.end - this.start);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].find((times) => times * power >= wanted) * power;
    const [unit, perMs] = step >= 1000   ? ["s", 1e-3]
                          : step >= 0.1  ? ["ms", 1]
                          : step >= 1e-4 ? ["µs", 1e3]
                                         : ["ns", 1e6];
    const digits = Math.max(0, -Math.floor(Math.log10(step * perMs) + 1e-9));
    const ticks = [];
    for (let i = Math.max(0, Math.ceil(this.start / step)); i * step <= this.end; ++i)
      ticks.push([i * step, (i * step * perMs).toFixed(digits) + " " + unit]);
    return ticks;
  }
}

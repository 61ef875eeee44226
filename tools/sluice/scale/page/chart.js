// SVG charts over the number of replicas. Each point of the report has the same position in all charts.

const kWidth = 900, kHeight = 260, kLeft = 60, kBottom = 30, kTop = 12;

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/// A chart whose vertical axis goes from 0 to `most`, with lines at round values formatted by `textOf`.
class Chart {
  constructor(points, most, textOf, label) {
    this.points = points;
    this.most = most > 0 ? most : 1;
    this.root = svg("svg", {viewBox: `0 0 ${kWidth} ${kHeight}`, role: "img", "aria-label": label});
    for (const value of ticksUpTo(this.most))
      this.root.append(svg("line", {class: "axis", x1: kLeft, x2: kWidth, y1: this.y(value), y2: this.y(value)}),
                       svg("text", {x: kLeft - 8, y: this.y(value) + 4, "text-anchor": "end"}, textOf(value)));
    const step = Math.ceil(points.length / 16);
    points.forEach((point, i) => {
      if (i % step === 0)
        this.root.append(
            svg("text", {x: this.x(i), y: kHeight - 8, "text-anchor": "middle"}, point.replicas.toLocaleString("en")));
    });
  }

  band() { return (kWidth - kLeft) / this.points.length; }

  x(i) { return kLeft + (i + 0.5) * this.band(); }

  y(value) { return kHeight - kBottom - (value / this.most) * (kHeight - kBottom - kTop); }

  drawCurve(valueOf, textOf) {
    const at = this.points.map((point, i) => [this.x(i), this.y(valueOf(point))]);
    this.root.append(svg("polyline", {class: "curve", points: at.map((xy) => xy.join(",")).join(" ")}));
    at.forEach(([x, y], i) => this.root.append(
                   svg("circle", {class: "dot", cx: x, cy: y, r: 4}, svg("title", {}, textOf(this.points[i])))));
  }

  /// Stacked bars of shares; `parts` has [class, name, share of a point].
  drawBars(parts) {
    const width = Math.min(56, 0.7 * this.band());
    this.points.forEach((point, i) => {
      let below = 0;
      for (const [style, name, valueOf] of parts) {
        const value = valueOf(point);
        if (!(value > 1e-9))
          continue;
        const top = this.y(below + value);
        this.root.append(svg("rect",
                             {class: style, x: this.x(i) - width / 2, y: top, width, height: this.y(below) - top},
                             svg("title", {}, `${point.replicas} replicas: ${name} ${percentText(value)}`)));
        below += value;
      }
    });
  }
}

/// At most six round values, starting at 0.
function ticksUpTo(most) {
  const power = 10 ** Math.floor(Math.log10(most / 5));
  const step = [1, 2, 5, 10].find((times) => times * power >= most / 5) * power;
  return Array.from({length: Math.floor(most / step + 1e-9) + 1}, (_, i) => i * step);
}

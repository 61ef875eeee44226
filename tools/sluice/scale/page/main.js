// The page: efficiency, the components of a step, and all figures, over the number of replicas.

// The components of a step as shares, the useful work first: the work that one replica would do in that time.
const kParts = [
  ["compute", "useful work", ({efficiency}) => efficiency],
  ["batch", "small batch", (point) => point.compute_ms / point.predicted_ms - point.efficiency],
  ["straggler", "waiting for the slowest", (point) => point.straggler_ms / point.predicted_ms],
  ["contention", "work slowed by collectives", (point) => point.contention_ms / point.predicted_ms],
  ["copy", "copies into buckets", (point) => point.copy_ms / point.predicted_ms],
  ["exposed", "exposed communication", (point) => point.exposed_ms / point.predicted_ms],
];

const kColumns = [
  ["replicas", ({replicas}) => replicas.toLocaleString("en")],
  ["rows each", ({rows}) => rows.toLocaleString("en")],
  ["step", ({predicted_ms}) => timeText(predicted_ms)],
  ["rows/s", ({rows_per_second}) => rows_per_second.toLocaleString("en", {maximumSignificantDigits: 4})],
  ["efficiency", ({efficiency}) => percentText(efficiency)],
  ["communication", ({communication_ms}) => timeText(communication_ms)],
  ["exposed", ({exposed_ms}) => timeText(exposed_ms)],
  ["limited by", ({limit}) => limit],
];

function drawTitle(report, title) {
  document.title = `${report.model}: scaling`;
  const rows = countText(report.rows, "row") + (report.scaling === "strong" ? " in all" : " each");
  const facts = [
    report.cluster, report.device, rows, "compute: " + report.compute,
    `${bytesText(report.gradient_bytes)} of gradients`
  ];
  title.append(el("h1", report.model), el("p", facts.join(" · ")));
}

function efficiencyCard({points}) {
  const chart = new Chart(points, Math.max(1, ...points.map(({efficiency}) => efficiency)), percentText,
                          "efficiency over the number of replicas");
  chart.drawCurve(({efficiency}) => efficiency,
                  ({replicas, efficiency}) => `${replicas} replicas: ${percentText(efficiency)}`);
  return card("efficiency", "Throughput, as a share of so many times one replica's", chart.root);
}

function stepCard({points}) {
  const chart = new Chart(points, 1, percentText, "parts of a step over the number of replicas");
  chart.drawBars(kParts);
  const legend = el("div.legend", ...kParts.map(([style, name]) => el("span", el("i." + style), name)));
  return card("step", "Where a step's time goes", legend, chart.root);
}

function tableCard({points}) {
  const table = el("table", el("tr", ...kColumns.map(([name]) => el("th", name))));
  for (const point of points)
    table.append(el("tr", ...kColumns.map(([, textOf]) => el("td", textOf(point)))));
  return card("figures", "Figures", table);
}

const report = readData("report-data");
drawTitle(report, document.getElementById("title"));
document.querySelector("main").append(efficiencyCard(report), stepCard(report), tableCard(report));

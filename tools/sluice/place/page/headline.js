// The first screen: the time of a step and of its alternatives, the work of each device with reasons, and the copies.

function drawHeadline(report, title, section) {
  const {model = "model", entry = "", rows} = report.json;
  document.title = `${model}: placement`;
  const facts = [
    entry,
    isNumber(rows) ? countText(rows, "row") : null,
    report.devices.map(({name}) => report.textOf(name)).join(" + "),
    countText(report.groups.length, "group"),
  ];
  title.append(el("h1", model), el("p", facts.filter(Boolean).join(" · ")));
  section.append(stepCard(report), alternativesCard(report), movesCard(report), devicesCard(report));
}

function stepCard(report) {
  const {predicted_ms, gap, objective} = report.json;
  const children = [el("p.big", timeText(predicted_ms))];
  if (report.measured) {
    const {measured_ms, clock} = report.measured;
    children.push(el("p.measured", el("b", timeText(measured_ms)),
                     " measured" + (clock ? ` by the clock of the ${clock === "host" ? "host" : "devices"}` : ""),
                     differenceText(measured_ms / predicted_ms)));
  }
  const [best] = feasible(report);
  if (best)
    children.push(el("p", comparisonText(best[1] / predicted_ms, report.alternativeText(best[0]))));
  if (isNumber(gap))
    children.push(el("p.gap", el("b", `Gap ${percentText(gap)}`),
                     gap === 0 ? ": none has less of " : " above the least there can be of ",
                     objective || "the sum of all times"));
  return card("step", "Predicted step", ...children);
}

function comparisonText(ratio, name) {
  if (Math.abs(ratio - 1) < 5e-4)
    return `As fast as the best plain placement, ${name}.`;
  return ratio > 1 ? `${ratio.toPrecision(3)} times as fast as the best plain placement, ${name}.`
                   : `Slower than ${name}, by this prediction.`;
}

function differenceText(ratio) {
  if (!isNumber(ratio))
    return "";
  const percent = 100 * (ratio - 1);
  return Math.abs(percent) < 0.05
             ? ", as predicted"
             : `, ${Math.abs(percent).toFixed(1)} % ${percent > 0 ? "longer" : "shorter"} than predicted`;
}

/// The feasible alternatives, the fastest first.
function feasible(report) {
  return Object.entries(report.json.alternatives ?? {}).filter(([, ms]) => isNumber(ms)).sort((a, b) => a[1] - b[1]);
}

function alternativesCard(report) {
  const infeasible = Object.entries(report.json.alternatives ?? {}).filter(([, ms]) => !isNumber(ms));
  const all = [["chosen", report.json.predicted_ms], ...feasible(report), ...infeasible];
  const most = Math.max(...all.map(([, ms]) => (isNumber(ms) ? ms : 0)), 1e-9);
  const lines = all.map(([name, ms], i) => {
    const style = !isNumber(ms) ? "infeasible" : i === 0 ? "chosen" : "other";
    return barLine(report.alternativeText(name), meter(isNumber(ms) ? ms / most : 1, style),
                   isNumber(ms) ? timeText(ms) : "infeasible");
  });
  return card("alternatives", "Alternatives", ...lines);
}

/// A line per device: its work, its time, the reason, and its memory.
function devicesCard(report) {
  return card("devices", "What runs where, and why", ...report.devices.map((device) => deviceLine(report, device)));
}

function deviceLine(report, device) {
  const groups = report.groupsOn(device.name);
  const lane = report.lanes.find((lane) => lane.queue === device.name);
  const busy = lane.predicted.busy() / report.span;
  const costs = device.costs ? "costs " + (device.costs === "roofline" ? "by roofline" : device.costs) : null;
  return el("div.device", el("div", el("b.name", report.textOf(device.name)), costs && el("p.sub", costs)),
            el("div", el("b", countText(groups.length, "group")), el("p.sub", kindsOf(groups))),
            el("div", el("b", timeText(sum(groups, (group) => group.ms))), `, ${percentText(busy)} of the step`,
               meter(busy, "chosen"), el("p.sub", elsewhereText(report, device, groups))),
            reasonsOf(groups), memoryOf(report, device));
}

/// The most frequent kinds.
function kindsOf(groups) {
  const counts = new Map();
  for (const {kind} of groups)
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  return sorted.slice(0, 3).map(([kind, count]) => `${clipped(kind)} ×${count.toLocaleString("en")}`).join(", ") +
         (sorted.length > 3 ? ", …" : "");
}

/// The time of a device's groups on each other device.
function elsewhereText(report, {name}, groups) {
  const parts = report.devices.filter((other) => other.name !== name && groups.length > 0).map((other) => {
    const possible = groups.filter((group) => isNumber(group.json.ms?.[other.name]));
    const ms = sum(possible, (group) => group.json.ms[other.name]);
    const impossible = groups.length - possible.length;
    return `${timeText(ms)} on ${report.textOf(other.name)}` +
           (impossible > 0 ? ` without ${impossible.toLocaleString("en")} that cannot run there` : "");
  });
  return parts.length > 0 ? "would be " + parts.join(", ") : "";
}

/// The reasons that account for the most time.
function reasonsOf(groups) {
  const reasons = new Map();
  for (const {json, ms} of groups) {
    const entry = reasons.get(json.reason) ?? {count: 0, ms: 0};
    reasons.set(json.reason, {count: entry.count + 1, ms: entry.ms + (ms || 0)});
  }
  const sorted = [...reasons].filter(([reason]) => reason).sort((a, b) => b[1].ms - a[1].ms);
  const line = ([reason, {count}]) => el("li", el("b", count.toLocaleString("en") + "×"), " ", reason);
  const list = el("ul.reasons", ...sorted.slice(0, 2).map(line));
  if (sorted.length > 2)
    list.append(el("li.more", `and ${countText(sorted.length - 2, "other reason")}`));
  return list;
}

function memoryOf(report, {name, cap_bytes}) {
  const peak = report.json.peak_bytes?.[name];
  const capped = isNumber(cap_bytes);
  return el("div", el("b", bytesText(peak)), capped ? ` of ${bytesText(cap_bytes)}` : null,
            capped ? meter(peak / cap_bytes, peak > cap_bytes ? "over" : "other") : null, el("p.sub", "peak memory"));
}

/// The copies between each pair of devices, with their link.
function movesCard(report) {
  const pairs = new Map((report.json.links ?? []).map((link) => [link.from + "\0" + link.to, {link, copies: []}]));
  for (const copy of report.stepCopies()) {
    const key = copy.json.from + "\0" + copy.json.to;
    entryOf(pairs, key, () => ({link: null, copies: []})).copies.push(copy);
  }
  const most = Math.max(1, ...[...pairs.values()].map(({copies}) => sum(copies, (copy) => copy.bytes)));
  const lines = [...pairs].map(([key, {link, copies}]) => {
    const [from, to] = key.split("\0");
    const bytes = sum(copies, (copy) => copy.bytes), exposed = copies.filter((copy) => copy.hidden === false);
    const time = `${countText(copies.length, "copy")}, ${timeText(sum(copies, (copy) => copy.ms))}`;
    const waited = exposed.length === 0 ? "all hidden behind work"
                                        : timeText(sum(exposed, (copy) => copy.ms)) + " of it not hidden";
    const line =
        barLine(`${report.textOf(from)} → ${report.textOf(to)}`, meter(bytes / most, "copies"), bytesText(bytes));
    line.append(el("span.sub", copies.length > 0 ? `${time}, ${waited}` : "no copies"));
    if (link)
      line.append(
          el("span.sub", `link ${rateText(link.bytes_per_second)}, ${timeText(link.latency_s * 1e3)}, ${link.source}`));
    return line;
  });
  return card("moves", "Copies in a step", ...(lines.length > 0 ? lines : [el("p", "Nothing moves.")]));
}

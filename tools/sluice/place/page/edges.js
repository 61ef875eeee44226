// Arrows between bars: the producers and consumers of an item; for a copy, the lanes that it connects.

const kMostEdges = 100; // per item

function drawEdges(context, lanes, item, {colour, opacity, width}) {
  context.strokeStyle = context.fillStyle = colour;
  context.globalAlpha = opacity;
  context.lineWidth = width;
  for (const [from, to] of edgesOf(lanes, item))
    drawArrow(context, from, to);
  context.globalAlpha = 1;
}

/// Pairs of boxes: an arrow goes from the end of the first to the start of the second.
function edgesOf(lanes, item) {
  const box = lanes.boxOf(item);
  if (!box)
    return [];
  const reads = item.reads.slice(0, kMostEdges).map((read) => lanes.boxOf(read));
  const readers = item.readers.slice(0, kMostEdges).map((reader) => lanes.boxOf(reader));
  if (item.type === "copy") { // the lanes of its devices, unless the groups are known
    const laneBox = (device, left) => lanes.laneBoxes.has(device) && {...lanes.laneBoxes.get(device), left, width: 0};
    if (reads.length === 0)
      reads.push(laneBox(item.json.from, box.left));
    if (readers.length === 0)
      readers.push(laneBox(item.json.to, box.left + box.width));
  }
  return [...reads.map((read) => [read, box]), ...readers.map((reader) => [box, reader])].filter(([from, to]) =>
                                                                                                     from && to);
}

function drawArrow(context, from, to) {
  const [x0, x1] = [from.left + from.width, to.left];
  const down = to.top > from.top + from.height, up = to.top + to.height < from.top;
  const sign = down ? 1 : -1; // direction of the arrowhead, down or up
  const y0 = down ? from.top + from.height : from.top;
  const y1 = up ? to.top + to.height : to.top;
  const bend = down || up ? Math.max(10, Math.abs(y1 - y0) / 2) * sign : 0;
  context.beginPath();
  context.moveTo(x0, y0);
  if (bend)
    context.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  else // over the bars between them
    context.bezierCurveTo(x0, y0 - 14, x1, y1 - 14, x1, y1);
  context.stroke();
  const point = bend ? sign : 1;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 3, y1 - 5 * point);
  context.lineTo(x1 + 3, y1 - 5 * point);
  context.fill();
}

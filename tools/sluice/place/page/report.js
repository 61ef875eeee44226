// The report in the form that the views use: items (groups and copies) in their lanes, and their consumers.

/// Items of one kind over time, in as few rows as avoid overlaps, up to `most`.
class Rows {
  constructor(items, startOf, endOf, most) {
    this.startOf = startOf;
    this.endOf = endOf;
    this.rows = [];
    for (const item of [...items].sort((a, b) => startOf(a) - startOf(b))) {
      let row = this.rows.find((row) => row.ends.at(-1) <= startOf(item) + 1e-9);
      if (!row && this.rows.length < most)
        this.rows.push((row = {items: [], ends: []}));
      row ??= this.rows.reduce((best, other) => (other.ends.at(-1) < best.ends.at(-1) ? other : best));
      row.items.push(item);
      row.ends.push(Math.max(endOf(item), row.ends.at(-1) ?? 0)); // the latest end so far, for binary search
    }
  }

  /// Calls visit(item) for the items of a row that overlap [start, end].
  visit(row, start, end, visit) {
    let low = 0, high = row.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      row.ends[middle] < start ? (low = middle + 1) : (high = middle);
    }
    for (; low < row.items.length && this.startOf(row.items[low]) <= end; ++low)
      visit(row.items[low]);
  }

  /// The time during which at least one item runs.
  busy() {
    const items = this.rows.flatMap((row) => row.items).sort((a, b) => this.startOf(a) - this.startOf(b));
    let busy = 0, until = 0;
    for (const item of items) {
      busy += Math.max(0, this.endOf(item) - Math.max(until, this.startOf(item)));
      until = Math.max(until, this.endOf(item));
    }
    return busy;
  }
}

class Report {
  constructor(json, measured) {
    this.json = json;
    this.measured = measured;
    this.devices = (json.devices ?? []).map((device) => ({...device, name: device.spelling ?? device.name}));
    this.texts = new Map((json.devices ?? []).map((device) => deviceEntry(device)));
    this.groups = (json.groups ?? []).map((group, index) => this.groupItem(group, index));
    this.copies = (json.copies ?? []).map((copy, index) => this.copyItem(copy, index));
    this.items = [...this.groups, ...this.copies];
    this.linkReaders();
    this.matching = measured ? new Matching(this, measured) : null;
    this.lanes = this.makeLanes();
    const ends = this.items.map((item) => Math.max(isTimed(item) ? item.end : 0, item.ran?.end ?? 0));
    this.span = ends.reduce((a, b) => Math.max(a, b), json.predicted_ms ?? 0) || 1;
  }

  groupItem(json, index) {
    const [start, end] = [json.start_ms, json.end_ms];
    const ms = isNumber(start) && isNumber(end) ? end - start : json.ms?.[json.device];
    const name = String(json.name ?? ""), kind = String(json.kind ?? "other");
    const {device} = json;
    return {type: "group", index, json, name, kind, device, queue: device, start, end, ms, reads: [], readers: []};
  }

  copyItem(json, index) {
    const host = this.devices[0]?.name;
    const queue = json.queue ?? (json.to === host ? json.from + ".out" : json.to + ".in");
    const [start, end] = [json.start_ms, json.end_ms];
    const ms = json.predicted_ms ?? (isNumber(start) && isNumber(end) ? end - start : null);
    const name = String(json.value ?? ""), device = queue.split(".")[0];
    const {bytes, hidden} = json;
    return {
      type: "copy",
      index,
      json,
      name,
      kind: "copy",
      device,
      queue,
      start,
      end,
      ms,
      bytes,
      hidden,
      reads: [],
      readers: []
    };
  }

  linkReaders() {
    const connect = (reader, read) => {
      if (!read || !reader)
        return;
      reader.reads.push(read);
      read.readers.push(reader);
    };
    for (const group of this.groups)
      for (const index of group.json.reads ?? [])
        connect(group, this.groups[index]);
    for (const copy of this.copies) {
      connect(copy, this.groups[copy.json.producer]);
      for (const index of copy.json.consumers ?? [])
        connect(this.groups[index], copy);
    }
  }

  /// A lane per device, followed by those of its used copy queues.
  makeLanes() {
    const queues = new Map(this.devices.flatMap(({name}) => [[name, []], [name + ".in", []], [name + ".out", []]]));
    for (const item of this.items)
      entryOf(queues, item.queue, () => []).push(item);
    const lanes = [];
    for (const [queue, items] of queues) {
      const isDevice = this.devices.some((device) => device.name === queue);
      const timed = items.filter(isTimed), ran = items.filter((item) => item.ran);
      if (!isDevice && timed.length + ran.length === 0)
        continue;
      lanes.push({
        queue,
        isDevice,
        device: queue.split(".")[0],
        predicted: new Rows(timed, (item) => item.start, (item) => item.end, 4),
        ran: new Rows(ran, (item) => item.ran.start, (item) => item.ran.end, 2),
      });
    }
    return lanes;
  }

  /// "gpu(0) (sim:0)" for "sim:0"
  textOf(device) { return this.texts.get(device) ?? device; }

  /// "all gpu(0) (sim:0)" for the alternative "all sim:0"
  alternativeText(name) { return name.startsWith("all ") ? "all " + this.textOf(name.slice(4)) : name; }

  groupsOn(device) { return this.groups.filter((group) => group.device === device); }

  /// The copies of a step, without those of other calls.
  stepCopies() { return this.copies.filter((copy) => (copy.json.when ?? "step") === "step"); }
}

/// The spelling of a device, by which a report refers to it, and its text for users.
function deviceEntry({name, spelling = name}) { return [spelling, name === spelling ? name : `${name} (${spelling})`]; }

/// The value of a key in a map; created by `make` on first use.
function entryOf(map, key, make) {
  if (!map.has(key))
    map.set(key, make());
  return map.get(key);
}

/// Whether the item has a time in the step; copies of other calls have none.
function isTimed(item) { return isNumber(item.start) && isNumber(item.end); }

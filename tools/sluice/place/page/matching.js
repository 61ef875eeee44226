// Matches measured work to groups and copies: by name, and among equal names in time order.

class Matching {
  constructor(report, measured) {
    const work = (measured.work ?? []).filter((work) => isNumber(work.start_ms) && isNumber(work.end_ms));
    work.sort((a, b) => a.start_ms - b.start_ms);
    const origin = work.length > 0 ? work[0].start_ms : 0;
    const waiting = {group: this.byName(report.groups), copy: this.byName(report.copies)};
    this.total = work.length;
    this.pairs = [];
    for (const {name, queue, start_ms, end_ms} of work) {
      const type = String(queue).includes(".") ? "copy" : "group";
      const other = type === "copy" ? "group" : "copy";
      const item = waiting[type].get(name)?.shift() ?? waiting[other].get(name)?.shift();
      if (!item)
        continue;
      item.ran = {start: start_ms - origin, end: end_ms - origin, ms: end_ms - start_ms, queue};
      this.pairs.push(item);
    }
  }

  byName(items) {
    const named = new Map();
    const startOf = (item) => (isTimed(item) ? item.start : Number.MAX_VALUE);
    for (const item of [...items].sort((a, b) => startOf(a) - startOf(b) || a.index - b.index))
      entryOf(named, item.json.kernel ?? item.name, () => []).push(item);
    return named;
  }
}

/// Measured time divided by predicted time.
function ratioOf(item) { return item.ran && item.ms > 0 ? item.ran.ms / item.ms : null; }

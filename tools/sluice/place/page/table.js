// A table that only creates elements for visible rows, sortable by each column.

const kRowHeight = 26, kMostHeight = 14 * kRowHeight;

class VirtualTable {
  /// Columns are numberColumn or textColumn; absent values are sorted last.
  constructor(section, heading, items, columns, {sortBy, select}) {
    Object.assign(this, {items, columns, select, sortBy, descending: true, matches: null, selected: null});
    this.count = el("small");
    this.headings = columns.map((column, i) => this.headingOf(column, i));
    this.body = el("div.rows");
    this.space = el("div.space", this.body);
    this.view = el("div.scroll", this.space);
    this.view.tabIndex = 0;
    this.view.addEventListener("scroll", () => this.draw());
    this.table = el("div.table", el("div.head", ...this.headings), this.view);
    this.table.style.setProperty("--columns", columns.map(({width}) => width).join(" "));
    section.append(el("h2", heading, " ", this.count), this.table);
    this.update();
  }

  headingOf(column, i) {
    const button = el("button" + (column.number ? ".number" : ""), column.name);
    button.addEventListener("click", () => {
      this.descending = this.sortBy === i ? !this.descending : Boolean(column.number);
      this.sortBy = i;
      this.update();
    });
    return button;
  }

  filter(matches) {
    this.matches = matches;
    this.update();
  }

  mark(item) {
    this.selected = item;
    this.draw();
  }

  update() {
    const value = this.columns[this.sortBy].value;
    const sign = this.descending ? -1 : 1;
    this.shown = this.matches ? this.items.filter((item) => this.matches.has(item)) : [...this.items];
    const keys = new Map(this.shown.map((item) => [item, value(item)]));
    this.shown.sort((a, b) => compare(keys.get(a), keys.get(b), sign) || a.index - b.index);
    this.headings.forEach(
        (heading, i) => heading.setAttribute(
            "aria-sort", i === this.sortBy ? (this.descending ? "descending" : "ascending") : "none"));
    this.count.textContent =
        this.matches ? `${this.shown.length.toLocaleString("en")} of ${this.items.length.toLocaleString("en")}`
                     : this.items.length.toLocaleString("en");
    this.space.style.height = this.shown.length * kRowHeight + "px";
    this.view.style.height = Math.min(kMostHeight, Math.max(1, this.shown.length) * kRowHeight) + "px";
    this.view.scrollTop = 0;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.view.scrollTop / kRowHeight) - 4);
    const last = Math.min(this.shown.length, first + Math.ceil(kMostHeight / kRowHeight) + 8);
    this.body.style.top = first * kRowHeight + "px";
    this.body.replaceChildren(...this.shown.slice(first, last).map((item) => this.row(item)));
  }

  row(item) {
    const row =
        el("div.row" + (item === this.selected ? ".selected" : ""),
           ...this.columns.map((column) => el("span" + (column.number ? ".number" : ""), clipped(column.text(item)))));
    row.addEventListener("click", () => this.select(item));
    return row;
  }
}

function compare(a, b, sign) {
  const absent = (value) => value === null || value === undefined || Number.isNaN(value);
  if (absent(a) || absent(b))
    return absent(a) - absent(b);
  return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
}

/// Truncated for a cell; the panel shows the whole text.
function clipped(text) {
  text = String(text ?? "");
  return text.length > 200 ? text.slice(0, 200) + "…" : text;
}

/// A column of numbers, shown by `text(number)`.
function numberColumn(name, width, value, text) {
  return {name, width, number: true, value, text: (item) => text(value(item))};
}

function textColumn(name, width, value) { return {name, width, value: (item) => value(item) ?? null, text: value}; }

function makeTables(report, select) {
  const time = numberColumn("time", "90px", (item) => item.ms, timeText);
  const reason = textColumn("reason", "minmax(120px, 2fr)", (item) => item.json.reason);
  const source = textColumn("source", "minmax(90px, 1fr)", (item) => item.json.source);
  const copies = [
    textColumn("value", "minmax(120px, 2fr)", (copy) => copy.name),
    textColumn("from → to", "180px", ({json}) => `${report.textOf(json.from)} → ${report.textOf(json.to)}`),
    numberColumn("bytes", "90px", (copy) => copy.bytes, bytesText),
    time,
    textColumn("hidden", "70px",
               ({hidden}) => (hidden === undefined ? null
                              : hidden             ? "yes"
                                                   : "no")),
    textColumn("when", "60px", ({json}) => json.when),
    reason,
    source,
  ];
  const groups = [
    textColumn("group", "minmax(120px, 2fr)", (group) => group.name),
    textColumn("kind", "100px", (group) => group.kind),
    textColumn("device", "120px", (group) => report.textOf(group.device)),
    time,
    reason,
    source,
  ];
  return [
    new VirtualTable(document.getElementById("copies"), "Copies", report.copies, copies, {sortBy: 2, select}),
    new VirtualTable(document.getElementById("groups"), "Groups", report.groups, groups, {sortBy: 3, select}),
  ];
}

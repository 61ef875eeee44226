// Formats numbers and builds elements of the page. Text is inserted as text, never as HTML.
"use strict";

/// A number with three digits in the largest of `units`, each 1000 times the previous one.
function scaledText(value, units) {
  let unit = 0;
  for (; Math.abs(value) >= 999.5 && unit + 1 < units.length; ++unit)
    value /= 1000;
  return (Math.abs(value) < 999.5 ? value.toPrecision(3) : value.toFixed(0)) + " " + units[unit];
}

function isNumber(value) { return typeof value === "number" && Number.isFinite(value); }

/// Milliseconds.
function timeText(ms) {
  return isNumber(ms) ? (ms === 0 ? "0 ms" : scaledText(ms * 1e6, ["ns", "µs", "ms", "s"])) : "unknown";
}

/// As in the command line's output: one decimal below 100 of a unit.
function bytesText(bytes) {
  if (!isNumber(bytes))
    return "unknown";
  const units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
  let unit = 0;
  for (; bytes >= 1000 && unit + 1 < units.length; ++unit)
    bytes /= 1000;
  return bytes.toFixed(unit > 0 && bytes < 100 ? 1 : 0) + " " + units[unit];
}

function rateText(bytesPerSecond) { return bytesText(bytesPerSecond) + "/s"; }

function countText(count, noun) {
  return count.toLocaleString("en") + " " + (count === 1 ? noun : noun.replace(/y$/, "ie") + "s");
}

function percentText(fraction) {
  const percent = 100 * fraction;
  return percent.toFixed(percent === 0 || Math.abs(percent) >= 9.95 ? 0 : Math.abs(percent) >= 0.1 ? 1 : 2) + " %";
}

/// A factor such as ×1.07.
function ratioText(ratio) {
  return isNumber(ratio) ? "×" + (ratio >= 99.5 ? ratio.toFixed(0) : ratio.toPrecision(ratio >= 1 ? 3 : 2)) : "";
}

/// el("div.card", "text", child, ...): null children are omitted.
function el(what, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  element.className = classes.join(" ");
  for (const child of children.flat())
    if (child !== null && child !== undefined)
      element.append(child); // strings become text nodes
  return element;
}

/// A text-like button that performs `action`.
function link(text, action) {
  const button = el("button.link", text);
  button.addEventListener("click", action);
  return button;
}

/// A horizontal bar of a share of its track.
function meter(share, ...classes) {
  const bar = el("i");
  bar.style.width = Math.min(100, Math.max(0, 100 * share)) + "%";
  return el(["span", "meter", ...classes].join("."), bar);
}

/// A name, a bar and a number.
function barLine(name, bar, number) {
  const line = el("div.bar-line", el("span.name", name), bar, el("span.number", number));
  line.title = name;
  return line;
}

function sum(list, value) { return list.reduce((total, item) => total + (value(item) || 0), 0); }

/// A framed part of a page, under a heading.
function card(name, heading, ...children) {
  const element = el("article.card", el("h2", heading), ...children);
  element.id = name;
  return element;
}

/// The content of an element, parsed as JSON.
function readData(id) { return JSON.parse(document.getElementById(id).textContent); }

"""Result rows, and the table and JSON made from them."""

import collections
import json

BAD = ("failed", "contradicted")
GOOD = ("passed", "confirmed", "measured")


def row(part, name, result, detail="", **more):
    return {"part": part, "name": name, "result": result, "detail": detail, **more}


def failures(rows):
    return [entry for entry in rows if entry["result"] in BAD]


def summary(rows):
    counts = collections.Counter(entry["result"] for entry in rows)
    return ", ".join(f"{count} {result}" for result, count in counts.items()) or "nothing"


def write(path, contents):
    path.write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")


def lines_of_reasons(rows):
    """The skipped checks, with each reason once."""
    names = collections.defaultdict(list)
    for entry in rows:
        if entry["result"] == "not tried":
            names[entry["part"], entry["detail"]].append(entry["name"])
    for (part, reason), which in names.items():
        others = f" and {len(which) - 1} more" if len(which) > 1 else ""
        yield f"  not tried     {part}: {which[0]}{others}: {reason}"


def lines_of_figures(rows):
    figures = [entry for entry in rows if "ms" in entry]
    if figures:
        yield f"\n  {'':<28}{'ms':>10}{'to ours':>10}{'of peak':>10}"
    for entry in figures:
        share = f"{entry['share']:>10.1%}" if "share" in entry else ""
        yield f"  {entry['name']:<28}{entry['ms']:>10.3f}{entry['ratio']:>10.2f}{share}"


def table(machine, parts, rows, seconds):
    lines = ["", f"Sluice's CUDA backend on {machine.text()}", "", f"  {'part':<14}{'held':>8}{'failed':>8}{'not tried':>11}{'seconds':>9}"]
    for part in parts:
        of_part = [entry for entry in rows if entry["part"] == part["name"]]
        held = sum(entry["result"] in GOOD for entry in of_part)
        absent = sum(entry["result"] == "not tried" for entry in of_part)
        lines.append(f"  {part['name']:<14}{held:>8}{len(failures(of_part)):>8}{absent:>11}{part['seconds']:>9.1f}")
    lines.append("")
    lines += [f"  {entry['result']:<14}{entry['part']}: {entry['name']}: {entry['detail']}" for entry in failures(rows)]
    lines += lines_of_reasons(rows)
    lines += [f"  {'found':<14}{entry['name']}: {entry['detail']}" for entry in rows if entry["part"] == "libraries" and entry["result"] == "passed"]
    lines += lines_of_figures(rows)
    lines += [f"  {entry['name']}: {entry['detail']}" for entry in rows if entry["result"] == "measured" and entry["detail"]]
    verdict = f"{len(failures(rows))} things fail" if failures(rows) else "everything that was tried holds"
    emulated = "; the device is emulated, so nothing here is measured" if machine.emulated else ""
    lines.append(f"\n{verdict}, in {seconds:.1f} s{emulated}")
    return "\n".join(lines)

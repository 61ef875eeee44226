"""One-line summaries of Sluice's values in a debugger. gdb_sluice.py and lldb_sluice.py show them.

A summary only reads memory, so that it is safe for variables without a value. It gets a `Value` of one of the two debuggers:

  value.field(name, ...)       a member, a member of that member, ...
  value.child(i)               of an array: element i
  value.number()               an integer, enumerator or address
  value.enumerator()           the name of an enumerator, without its enumeration
  value.element(i)             of a pointer: the object i places after it
  value.pointee_size()         of a pointer: the size of its object, in bytes
  value.address()              the address of the object
  value.at(address, type)      an object of a type, by the type's name
  value.memory(address, size)  bytes
  value.symbol(address)        the name of the symbol that contains an address
"""

import re

# --- the standard library: libstdc++


def string(value):
    """std::string."""
    size = value.field("_M_string_length").number()
    return characters(value, value.field("_M_dataplus", "_M_p").number(), size)


def characters(value, address, size, most=200):
    text = value.memory(address, min(size, most)).decode("utf-8", "replace") if size else ""
    return text + ("..." if size > most else "")


def items(vector):
    """std::vector."""
    start, finish = (vector.field("_M_impl", end) for end in ("_M_start", "_M_finish"))
    bytes_ = finish.number() - start.number()
    return [start.element(i) for i in range(bytes_ // start.pointee_size())] if bytes_ else []


def optional(value):
    """std::optional: its value, or None."""
    payload = value.field("_M_payload")
    return payload.field("_M_payload", "_M_value") if payload.field("_M_engaged").number() else None


def plural(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def names(vector, most=8):
    """The names of structs in a vector."""
    found = items(vector)
    return ", ".join([string(item.field("name")) for item in found[:most]] + ["..."] * (len(found) > most))


# --- frontend


def dim(value):
    name, size, times = string(value.field("name")), value.field("size").number(), value.field("times").number()
    if not name or size != -1:
        return str(size)
    return name if times == 1 else f"{name}*{times}"


def shape(value):
    return "[" + ", ".join(map(dim, items(value.field("dims")))) + "]"


# --- runtime


def sizes(value):
    """runtime::Shape, a vector of sizes."""
    return "[" + ", ".join(str(size.number()) for size in items(value)) + "]"


def slot(value):
    stride = value.field("stride").number()
    return f"arena {value.field('arena').number()} at {value.field('offset').number()}" + (f", stride {stride}" if stride else "")


def wait(value):
    calls = value.field("calls").number()
    return f"action {value.field('action').number()}" + (f", {plural(calls, 'call')} earlier" if calls else "")


def buffer(value):
    return f"{value.field('access').enumerator()} {plural(value.field('bytes').number(), 'byte')} in {slot(value.field('slot'))}"


def device(value):
    return f"{string(value.field('name'))}, backend {string(value.field('backend'))}"


def arena(value):
    return f"{string(value.field('name'))} on device {value.field('device').number()}, {plural(value.field('bytes').number(), 'byte')}"


def queue(value):
    return f"{string(value.field('name'))}, {value.field('kind').enumerator()} on device {value.field('device').number()}"


def typed(value):
    """The name, data type and shape of a state, input or output."""
    return f"{string(value.field('name'))}: {value.field('dtype').enumerator()} {sizes(value.field('shape'))}"


def state(value):
    return f"{value.field('kind').enumerator()} {typed(value)}, {slot(value.field('slot'))}"


def value_of_entry(value):
    rows = value.field("rowsDim").number()
    return typed(value) + (f", rows in dimension {rows}" if rows >= 0 else "") + f", {slot(value.field('slot'))}"


def stage(value):
    return f"function {value.field('function').number()}, {plural(value.field('tasks').number(), 'task')}"


def kernel(value):
    ops = ", ".join(map(string, items(value.field("ops"))))
    return f"{string(value.field('name'))} on device {value.field('device').number()}: {ops or 'no ops'}"


def module(value):
    return f"backend {string(value.field('backend'))}, section {value.field('section').number()}"


def launch(value):
    buffers = plural(len(items(value.field("buffers"))), "buffer")
    return f"launch {string(value.field('name'))}, kernel {value.field('kernel').number()}, {buffers}"


def copy(value):
    count, rows = value.field("bytes").number(), value.field("bytesPerRow").number()
    return (f"copy {string(value.field('value'))} ({string(value.field('reason'))}), {plural(count, 'byte')}" + (f" and {rows} a row" if rows else "") +
            f", {slot(value.field('from'))} to {slot(value.field('to'))}, {value.field('when').enumerator()}")


def exchange(value):
    copies = value.field("copies", "_M_elems")
    return "exchange of " + " and ".join(string(copies.child(i).field("value")) for i in range(2))


def collective(value):
    return (f"{value.field('kind').enumerator()} {string(value.field('name'))}: {value.field('reduction').enumerator()} of "
            f"{value.field('count').number()} {value.field('dtype').enumerator()}")


def loop(value):
    return f"loop {string(value.field('name'))}, {plural(value.field('count').number(), 'time')}: {plural(len(items(value.field('actions'))), 'action')}"


def action(value):
    kinds = (("Launch", launch), ("Copy", copy), ("Exchange", exchange), ("Loop", loop), ("Collective", collective))
    work = value.field("work")
    index = work.field("_M_index").number()
    if index >= len(kinds):
        return "no work"
    name, summary = kinds[index]
    queues = ", ".join(str(queue.number()) for queue in items(value.field("queues")))
    waits = "; ".join(map(wait, items(value.field("waits"))))
    # The alternatives of a variant begin where the variant begins.
    return summary(work.at(work.address(), f"sluice::runtime::{name}")) + f", queue {queues}" + (f", waits for {waits}" if waits else "")


def call_part(value):
    return f"entry {value.field('entry').number()}, {value.field('when').enumerator()}"


def entry(value):
    work = plural(len(items(value.field("actions"))), "action")
    parts = len(items(value.field("parts")))
    return f"{string(value.field('name'))}({names(value.field('inputs'))}) -> ({names(value.field('outputs'))}): " + (plural(parts, "part") if parts else work)


def plan(value):
    counts = ", ".join(plural(len(items(value.field(name))), name.rstrip("s")) for name in ("states", "kernels", "arenas", "queues"))
    return f"{string(value.field('model'))}: devices {names(value.field('devices'))}; {counts}; entries {names(value.field('entries'))}"


# --- MLIR: only what its public headers define


def name_in(value):
    """llvm::StringRef."""
    return characters(value, value.field("Data").number(), value.field("Length").number())


def type_(value):
    return type_of(value, value.field("impl").number())


def type_of(value, storage):
    return name_in(value.at(storage, "mlir::TypeStorage").field("abstractType").element(0).field("name")) if storage else "null"


def attribute(value):
    storage = value.field("impl").number()
    return name_in(value.at(storage, "mlir::AttributeStorage").field("abstractAttribute").element(0).field("name")) if storage else "null"


def ir_value(value):
    implementation = value.field("impl").number()
    if not implementation:
        return "null"
    word = value.at(implementation, "mlir::detail::ValueImpl").field("typeAndKind").address()
    word = int.from_bytes(value.memory(word, 8), "little")
    kind = word & 7  # ValueImpl::Kind
    place = {6: "result", 7: "block argument"}.get(kind, f"result {kind}")
    return f"{place} of type {type_of(value, word - kind)}"


def operation(value):
    """mlir::Operation: the C++ class of the op, which is in the name of a virtual table."""
    name = value.field("name", "impl").number()
    table = value.symbol(int.from_bytes(value.memory(name, 8), "little")) if name else ""
    found = re.search(r"Model<(.+)>", table)
    return f"{found[1] if found else 'an op that is not registered'}, {plural(value.field('numResults').number(), 'result')}"


def op(value):
    """An op class, such as sluice::ir::ExpOp."""
    address = value.field("state").number()
    return operation(value.at(address, "mlir::Operation")) if address else "null"


RUNTIME = {"Slot": slot, "Wait": wait, "Buffer": buffer, "Device": device, "Arena": arena, "Queue": queue, "State": state, "Value": value_of_entry,
           "Stage": stage, "Kernel": kernel, "Module": module, "Launch": launch, "Copy": copy, "Exchange": exchange, "Collective": collective,
           "Loop": loop, "Action": action, "CallPart": call_part, "Entry": entry, "Plan": plan, "Shape": sizes}

WORD = "[A-Za-z0-9_]"  # LLDB does not know \\w
IR = f"(mlir|sluice::ir)::({WORD}+::)*{WORD}*"
# Patterns of type names, and the summary of each; the first that matches the whole name counts.
SUMMARIES = [
    ("sluice::Dim", dim),
    ("sluice::Shape", shape),
    *((f"sluice::runtime::{name}", summary) for name, summary in RUNTIME.items()),
    ("mlir::Operation", operation),
    ("(mlir::(Value|OpResult|BlockArgument)|mlir::detail::TypedValue<.*>)", ir_value),
    (f"{IR}Type", type_),
    (f"{IR}Attr(ibute)?", attribute),
    (f"{IR}Op", op),
]


def summary_of(type_name):
    return next((summary for pattern, summary in SUMMARIES if re.fullmatch(pattern, type_name)), None)


# --- the text of an op, value, type or attribute, as dumps have it


def ir_text(type_name, expression, evaluate, process):
    """Makes the program dump an IR object into a file in memory, and returns the text. `evaluate` computes an integer in the program."""
    object_type = type_name.rstrip("*& ")
    summary = summary_of(object_type)
    if summary not in (operation, op, ir_value, type_, attribute):
        raise ValueError(f"cannot print {expression}: {object_type} is not an op, value, type or attribute")
    access = "->" if type_name.endswith("*") else "."
    target = f"({expression}){access}" + ("state->dump()" if summary is op else "dump()")
    file = evaluate('(int)memfd_create("sluice", 0)')
    errors = evaluate("(int)dup(2)")
    evaluate(f"(int)dup2({file}, 2)")
    try:
        evaluate(f"({target}, 0)")
        with open(f"/proc/{process}/fd/{file}", encoding="utf-8") as text:
            return text.read().rstrip("\n")
    finally:
        evaluate(f"(int)dup2({errors}, 2)")
        evaluate(f"(int)close({errors})")
        evaluate(f"(int)close({file})")

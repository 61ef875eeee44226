#!/usr/bin/env python3
"""Checks that debuggers show values by tools/debug: debug_test.py SOURCE_ROOT PROGRAM gdb|lldb."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, PROGRAM, DEBUGGER = sys.argv[1:]

OP = '%0 = sluice.exp %x : (tensor<?x3xf32, #sluice.at<device = "cpu">>) -> tensor<?x3xf32, #sluice.at<device = "cpu">>'
SLOT = "arena 0 at 128"
VALUES = {
    "shape": "[batch, 28, batch*16, 10]",
    "scalar": "[]",
    "sizes": "[20, 1, 3, 3]",
    "plan": "tiny: devices cpu, acc0; 1 state, 1 kernel, 2 arenas, 2 queues; entries predict",
    "plan.devices": ["cpu, backend cpu", "acc0, backend sim"],
    "plan.arenas": ["states on device 0, 4096 bytes", "constants on device 1, 64 bytes"],
    "plan.queues": ["compute, compute on device 0", "copies, copy on device 1"],
    "plan.states": [f"parameter fc.weight: f32 [10, 784], {SLOT}"],
    "plan.kernels": ["fc on device 0: sluice.einsum, sluice.add"],
    "entry": "predict(image) -> (): 5 actions",
    "entry.inputs": ["image: u8 [256, 784], rows in dimension 0, arena 0 at 0"],
    "entry.actions": ["launch fc, kernel 0, 1 buffer, queue 0, waits for action 3, 1 call earlier",
                      "copy x (pin), 0 bytes and 3136 a row, arena 0 at 0 to arena 1 at 64, step, queue 1", "exchange of x and x, queue 1",
                      "allReduce gradients: sum of 7850 f32, queue 0, 1", "loop steps, 5 times: 1 action, queue 0, waits for action 0"],
    "operation": "sluice::ir::ExpOp, 1 result",
    "*operation": "sluice::ir::ExpOp, 1 result",
    "exponential": "sluice::ir::ExpOp, 1 result",
    "function": "sluice::ir::EntryOp, 0 results",
    "argument": "block argument of type builtin.tensor",
    "result": "result 0 of type builtin.tensor",
    "type": "builtin.tensor",
    "at": "sluice.at",
    "noType": "null",
}
TEXTS = {"operation": OP, "exponential": OP, "result": OP, "type": 'tensor<?x3xf32, #sluice.at<device = "cpu">>', "at": '#sluice.at<device = "cpu">',
         "shape": "cannot print shape: sluice::Shape is not an op, value, type or attribute"}

# GDB cannot call functions under kernels that refuse the registers of AVX; these registers are enough.
REGISTERS = '<target version="1.0"><architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi></target>'


def command(folder):
    scripts = os.path.join(SOURCE, "tools", "debug")
    if DEBUGGER == "gdb":
        registers = os.path.join(folder, "registers.xml")
        with open(registers, "w", encoding="utf-8") as out:
            out.write(REGISTERS)
        start = [f"source {scripts}/gdb_sluice.py", "set startup-with-shell off", f"set tdesc filename {registers}", "break stopHere", "run", "up"]
        shown = [f"print {name}" for name in VALUES]
        option = "-ex"
        tool = [shutil.which("gdb"), "-nx", "-batch"]
    else:
        start = [f"command script import {scripts}/lldb_sluice.py", "breakpoint set -n stopHere", "run", "up"]
        shown = [f"frame variable {name}" for name in VALUES]
        option = "-o"
        tool = [shutil.which("lldb-19") or shutil.which("lldb"), "--no-lldbinit", "-b"]
    if not tool[0]:
        print(f"{DEBUGGER} is absent")
        sys.exit(77)
    marked = []
    for line in shown + [f"sluice-text {name}" for name in TEXTS]:
        marked += [f'script print("== {line}")' if DEBUGGER == "lldb" else f'echo == {line}\\n', line]
    return [*tool, *(part for line in start + marked for part in (option, line)), PROGRAM]


def main():
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(command(folder), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280, check=False)
    shown = dict(re.findall(r"^== (.*)\n((?:(?!== ).*\n?)*)", result.stdout, re.M))
    verb = "print" if DEBUGGER == "gdb" else "frame variable"
    expected = {f"{verb} {name}": text if isinstance(text, list) else [text] for name, text in VALUES.items()}
    expected |= {f"sluice-text {name}": [text] for name, text in TEXTS.items()}
    wrong = 0
    for line, texts in expected.items():
        missing = [text for text in texts if text not in shown.get(line, "")]
        for text in missing:
            print(f"{line}: expected {text!r}, found {shown.get(line, 'nothing')!r}")
        wrong += len(missing)
    if wrong:
        print(result.stdout)
    print(f"{len(expected)} values, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

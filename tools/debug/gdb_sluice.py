"""GDB: shows Sluice's values in one line, and adds the command `sluice-text`. See CONTRIBUTING.md."""

import os
import sys

import gdb
import gdb.printing

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sluice_summaries  # noqa: E402: lies beside this file


class Value:
    """A value of GDB as sluice_summaries reads it."""

    def __init__(self, value):
        self.value = value

    def field(self, *names):
        value = self.value
        for name in names:
            value = value[name]
        return Value(value)

    def child(self, i):
        return Value(self.value[i])

    def number(self):
        return int(self.value)

    def enumerator(self):
        return str(self.value).rpartition("::")[2]

    def element(self, i):
        return Value((self.value + i).dereference())

    def pointee_size(self):
        return self.value.type.strip_typedefs().target().sizeof

    def address(self):
        return int(self.value.address)

    def at(self, address, type_name):
        return Value(gdb.Value(address).cast(gdb.lookup_type(type_name).pointer()).dereference())

    def memory(self, address, size):
        return gdb.selected_inferior().read_memory(address, size).tobytes()

    def symbol(self, address):
        return gdb.execute(f"info symbol {address:#x}", to_string=True)


class Printer:
    def __init__(self, value, summary):
        self.value, self.summary = value, summary

    def to_string(self):
        try:
            return self.summary(Value(self.value))
        except (gdb.error, UnicodeError) as error:
            return f"<unreadable: {error}>"


class Pointer(Printer):
    """A pointer with the summary of the object."""

    def to_string(self):
        address = f"{int(self.value):#x}"
        return f"{address} {Printer(self.value.dereference(), self.summary).to_string()}" if int(self.value) else address


class Printers(gdb.printing.PrettyPrinter):
    def __init__(self):
        super().__init__("sluice", [])

    def __call__(self, value):
        type_ = value.type
        if type_.code == gdb.TYPE_CODE_REF:
            value = value.referenced_value()
            type_ = value.type
        type_ = type_.unqualified()
        if type_.code == gdb.TYPE_CODE_PTR:
            name = type_.target().unqualified().name
            return Pointer(value, sluice_summaries.summary_of(name)) if name == "mlir::Operation" else None
        for candidate in (type_, type_.strip_typedefs()):
            summary = candidate.name and sluice_summaries.summary_of(candidate.name)
            if summary:
                return Printer(value, summary)
        return None


class TextCommand(gdb.Command):
    """sluice-text EXPRESSION: prints an op, value, type or attribute of the IR as dumps do. Calls functions of the program."""

    def __init__(self):
        super().__init__("sluice-text", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, expression, _):
        try:
            type_ = gdb.parse_and_eval(expression).type.strip_typedefs().unqualified()
            print(sluice_summaries.ir_text(str(type_), expression, lambda call: int(gdb.parse_and_eval(call)), gdb.selected_inferior().pid))
        except (ValueError, gdb.error) as error:
            raise gdb.GdbError(str(error)) from None


def register(event=None):
    """Registers the printers with the program. The printers of the standard library belong to a file and precede global ones."""
    program = gdb.current_progspace().filename
    for file in [event.new_objfile] if event else gdb.objfiles():
        if file.filename == program:
            gdb.printing.register_pretty_printer(file, Printers(), replace=True)


register()
gdb.events.new_objfile.connect(register)
TextCommand()

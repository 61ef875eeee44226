"""LLDB: shows Sluice's values in one line, and adds the command `sluice-text`. See CONTRIBUTING.md."""

import os
import sys

import lldb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sluice_summaries  # noqa: E402: lies beside this file


class Unreadable(Exception):
    """The reason why a value has no summary."""


class Value:
    """A value of LLDB as sluice_summaries reads it."""

    def __init__(self, value):
        self.value = value.GetNonSyntheticValue()
        if not self.value.IsValid():
            raise Unreadable("no such member")

    def field(self, *names):
        value = self.value
        for name in names:
            value = value.GetChildMemberWithName(name)
        return Value(value)

    def child(self, i):
        return Value(self.value.GetChildAtIndex(i))

    def number(self):
        error = lldb.SBError()
        number = self.value.GetValueAsSigned(error)
        if error.Fail():
            raise Unreadable(error.GetCString())
        return number

    def enumerator(self):
        return self.value.GetValue().rpartition("::")[2]

    def element(self, i):
        pointee = self.value.GetType().GetCanonicalType().GetPointeeType()
        return Value(self.value.CreateValueFromAddress("element", self.number() + i * pointee.GetByteSize(), pointee))

    def pointee_size(self):
        return self.value.GetType().GetCanonicalType().GetPointeeType().GetByteSize()

    def address(self):
        return self.value.GetLoadAddress()

    def at(self, address, type_name):
        return Value(self.value.CreateValueFromAddress("object", address, self.value.GetTarget().FindFirstType(type_name)))

    def memory(self, address, size):
        error = lldb.SBError()
        data = self.value.GetProcess().ReadMemory(address, size, error)
        if error.Fail():
            raise Unreadable(error.GetCString())
        return data

    def symbol(self, address):
        return self.value.GetTarget().ResolveLoadAddress(address).GetSymbol().GetName() or ""


def summarize(value, _):
    type_ = value.GetType().GetUnqualifiedType()
    if type_.IsReferenceType():
        type_ = type_.GetDereferencedType().GetUnqualifiedType()
    if type_.IsPointerType():
        if not value.GetValueAsUnsigned():
            return ""
        value, type_ = value.Dereference(), type_.GetPointeeType().GetUnqualifiedType()
    summaries = (sluice_summaries.summary_of(candidate.GetName()) for candidate in (type_, type_.GetCanonicalType()))
    try:
        return next(filter(None, summaries))(Value(value))
    except (Unreadable, UnicodeError) as error:
        return f"<unreadable: {error}>"


def print_text(debugger, expression, result, _):
    """sluice-text EXPRESSION: prints an op, value, type or attribute of the IR as dumps do. Calls functions of the program."""
    target = debugger.GetSelectedTarget()
    frame = target.GetProcess().GetSelectedThread().GetSelectedFrame()

    def evaluated(call):
        value = frame.EvaluateExpression(call)
        if value.GetError().Fail():
            raise ValueError(value.GetError().GetCString())
        return value

    try:
        type_name = evaluated(expression).GetType().GetCanonicalType().GetUnqualifiedType().GetName()
        print(sluice_summaries.ir_text(type_name, expression, lambda call: evaluated(call).GetValueAsSigned(), target.GetProcess().GetProcessID()),
              file=result)
    except ValueError as error:
        result.SetError(str(error))


def __lldb_init_module(debugger, _):
    for pattern, _ in sluice_summaries.SUMMARIES:
        debugger.HandleCommand(f'type summary add -w sluice -F {__name__}.summarize -x "^{pattern}$"')
    debugger.HandleCommand("type category enable sluice")
    debugger.HandleCommand(f"command script add -f {__name__}.print_text sluice-text")

#include "ir/text/DiagnosticText.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace sluice::ir {

static constexpr llvm::StringLiteral kUnsupported = "unsupported: ", kExhausted = "out of memory: ";

DiagnosticText::DiagnosticText(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) { append(diagnostic); }) {}

static void print(llvm::raw_ostream &out, const Diagnostic &diagnostic, llvm::StringRef kind) {
  std::string place = printLocation(diagnostic.getLocation());
  out << place << (place.empty() ? "" : ": ") << kind << ": " << diagnostic.str() << '\n';
}

void DiagnosticText::append(Diagnostic &diagnostic) {
  bool error = diagnostic.getSeverity() == DiagnosticSeverity::Error;
  if (!error && diagnostic.getSeverity() != DiagnosticSeverity::Warning)
    return;
  llvm::raw_string_ostream out(error ? errorText : warningText);
  print(out, diagnostic, error ? "error" : "warning");
  for (Diagnostic &note : diagnostic.getNotes())
    print(out, note, "note");
  unsupported |= error && llvm::StringRef(diagnostic.str()).starts_with(kUnsupported);
  exhausted |= error && llvm::StringRef(diagnostic.str()).starts_with(kExhausted);
}

std::string printLocation(Location location) {
  auto file = location->findInstanceOf<FileLineColLoc>();
  if (!file)
    return "";
  return (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) + ":" + llvm::Twine(file.getColumn()))
      .str();
}

} // namespace sluice::ir

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

static std::string harmless(llvm::StringRef text) {
  constexpr size_t most = 1024;
  std::string printable = text.take_front(most).str();
  unsigned char before = 0;
  for (char &c : printable) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0)) // U+0080 to U+009F follow 0xc2 in UTF-8
      c = before == 0xc2 ? char(0xa0) : '_';                            // a space
    before = byte;
  }
  return printable;
}

std::string printLocation(Location location) {
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    return harmless(file.getFilename()) + ":" + std::to_string(file.getLine()) + ":" + std::to_string(file.getColumn());
  auto node = location->findInstanceOf<NameLoc>();
  return node ? harmless(node.getName()) : "";
}

} // namespace sluice::ir

#include "tools/sluice/Tracing.h"

#include "passes/Nearest.h"
#include "passes/driver/PassTable.h"
#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

namespace sluice::tool {

static void checkPass(const std::string &name) {
  if (passes::findPass(name))
    return;
  llvm::SmallVector<llvm::StringRef> known;
  for (const passes::Pass &pass : passes::allPasses())
    known.push_back(pass.name);
  throw CLI::ValidationError("--print-after", "there is no pass '" + name + "'" + passes::didYouMean(name, known) +
                                                  "; the passes are " + llvm::join(known, ", "));
}

static void printAfter(mlir::ModuleOp module, llvm::StringRef phase, llvm::StringRef pass) {
  llvm::errs() << "// After pass " << pass << " of phase " << phase << '\n';
  mlir::OpPrintingFlags flags;
  module.print(llvm::errs(), flags.elideLargeElementsAttrs(64));
  llvm::errs() << '\n';
}

std::shared_ptr<Tracing> addTracingFlags(CLI::App &command, compiler::CompileTask &task) {
  auto tracing = std::make_shared<Tracing>();
  command.add_flag("--timing", tracing->timing, "Print the time of each phase and of each of its passes");
  command
      .add_option_function<std::vector<std::string>>(
          "--print-after",
          [&task](const std::vector<std::string> &names) {
            for (const std::string &name : names)
              checkPass(name);
            task.observer = [names](mlir::ModuleOp module, llvm::StringRef phase, llvm::StringRef pass) {
              if (llvm::is_contained(names, pass))
                printAfter(module, phase, pass);
            };
          },
          "Print the IR to standard error after this pass; repeatable")
      ->type_name("PASS")
      ->allow_extra_args(false);
  command.add_flag("--verify-each", task.verifiesEach, "Verify the IR and all invariants after each pass");
  return tracing;
}

void printTiming(llvm::raw_ostream &out, const compiler::Compiled &compiled) {
  double total = 0;
  for (const compiler::PhaseTime &phase : compiled.phases)
    total += phase.seconds;
  auto line = [&](const std::string &name, double seconds) {
    out << fmt::format("{:<30}{:>10.1f} ms{:>7.1f} %\n", name, seconds * 1e3, total > 0 ? 100 * seconds / total : 0);
  };
  for (const compiler::PhaseTime &phase : compiled.phases) {
    line(phase.phase, phase.seconds);
    for (const compiler::PassTime &pass : phase.passes)
      line("  " + pass.pass, pass.seconds);
  }
  line("total", total);
  passes::SharedCounts shared = compiled.allShared();
  for (auto [name, count] :
       {std::pair("reused kernels", shared.reused), std::pair("cached kernels", shared.fromFolder)})
    if (count > 0)
      out << fmt::format("{:<30}{:>10} of {}\n", name, count, shared.kernels);
}

} // namespace sluice::tool

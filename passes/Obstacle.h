// Why a module cannot be compiled as requested.
#pragma once

#include "ir/text/DiagnosticText.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::passes {

struct Obstacle {
  enum Kind {
    None,
    Usage,       ///< a wrong option
    Invalid,     ///< a wrong model
    Unsupported, ///< an op or device that is not available
    Exhausted,   ///< more memory than a device may have
    Internal,    ///< a bug in Sluice
  } kind = None;
  std::string text;
};

/// The collected errors as one: Unsupported or Exhausted if one of them is, else Invalid.
Obstacle obstacleOf(const ir::DiagnosticText &diagnostics);

/// An obstacle as an error.
class ObstacleError : public llvm::ErrorInfo<ObstacleError> {
public:
  static char ID;
  explicit ObstacleError(Obstacle obstacle) : obstacle(std::move(obstacle)) {}
  void log(llvm::raw_ostream &out) const override { out << obstacle.text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
  Obstacle::Kind kind() const { return obstacle.kind; }

private:
  Obstacle obstacle;
};

llvm::Error refuse(Obstacle::Kind kind, const llvm::Twine &text);
/// The same error with a kind, for errors of libraries without kinds.
llvm::Error withKind(Obstacle::Kind kind, llvm::Error error);
/// The collected errors as an error.
llvm::Error errorOf(const ir::DiagnosticText &diagnostics);

} // namespace sluice::passes

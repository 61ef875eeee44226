// The one exception of the graph API.
#pragma once

#include "sluice/language.h"

#include <exception>
#include <source_location>
#include <string>
#include <vector>

namespace sluice {

/// A line and a column of the user's program.
struct SourceLocation {
  std::string file; ///< base name; empty: not in user code, e.g. a default argument evaluated in std::make_unique
  unsigned line = 0;
  unsigned column = 0;

  SourceLocation() = default;
  SourceLocation(std::source_location where);
  SourceLocation(std::string file, unsigned line, unsigned column);
  /// "model.cpp:13:18"
  std::string str() const;
};

/// A wrong use of the API, or a file that could not be written. `what()` reads as a compiler's diagnostic:
///
///     model.cpp:13:18: error: matmul: contracting dimensions differ: 784 and 512 ([batch, 784] x [512, 10])
///     model.cpp:9:12: note: [batch, 784] created here
///
/// A program that does not catch the error prints this text and exits with `code()`.
class Error : public std::exception {
public:
  struct Note {
    std::string message;
    SourceLocation location;
  };

  Error(std::string message, SourceLocation location, std::vector<Note> notes = {}, int code = 2);

  const char *what() const noexcept override { return text.c_str(); }
  const std::string &message() const { return said; }
  const SourceLocation &location() const { return at; }
  const std::vector<Note> &notes() const { return more; }
  /// The exit code, the same as of executables. 2: wrong use. 3: a file cannot be read or written. 4: a device or an op
  /// is missing. 5: too little memory. 70: a defect of Sluice.
  int code() const { return exitCode; }

private:
  std::string said;
  SourceLocation at;
  std::vector<Note> more;
  std::string text;
  int exitCode;
};

} // namespace sluice

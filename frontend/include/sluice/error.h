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
  std::string file;  ///< base name; empty: not in user code, e.g. a default argument evaluated in std::make_unique
  unsigned line = 0; ///< 0: `file` is the name of a node of an imported model
  unsigned column = 0;

  SourceLocation() = default;
  /// Keeps the base name of the file; a location in a system header becomes empty.
  SourceLocation(std::source_location where);
  SourceLocation(std::string file, unsigned line, unsigned column);
  /// "model.cpp:13:18", or the name of the node.
  std::string str() const;
};

/// A wrong use of the API, an invalid file, or a failure of the compiler or runtime; `code()` tells them apart.
/// `what()` reads as a compiler's diagnostic:
///
///     model.cpp:13:18: error: matmul: contracting dimensions differ: 784 and 512 ([batch, 784] x [512, 10])
///     model.cpp:9:12: note: [batch, 784] created here
///
/// A program that does not catch the error prints this text and exits with `code()`.
class Error : public std::exception {
public:
  /// A further line that explains the error, such as the creation of an operand.
  struct Note {
    std::string message;     ///< "[batch, 784] created here"
    SourceLocation location; ///< of the cause
  };

  /// An error with an exit code. Programs may throw their own.
  Error(std::string message, SourceLocation location, std::vector<Note> notes = {}, int code = 2);

  /// The whole text, with location and notes; valid as long as the error.
  const char *what() const noexcept override { return text.c_str(); }
  /// The text without location and notes; the location; the notes.
  const std::string &message() const { return said; }
  const SourceLocation &location() const { return at; }
  const std::vector<Note> &notes() const { return more; }
  /// The exit code, as of executables. 2: wrong use. 3: a file, label or index is invalid, or a file cannot be read or
  /// written. 4: a device or an op is not available. 5: out of memory. 70: a defect of Sluice.
  int code() const { return exitCode; }

private:
  std::string said;
  SourceLocation at;
  std::vector<Note> more;
  std::string text;
  int exitCode;
};

} // namespace sluice

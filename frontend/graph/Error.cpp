// Errors: their text, formatted as a compiler diagnostic, and the exit of a program that does not catch an error.
#include "sluice/error.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

namespace sluice {

//===- lines ------------------------------------------------------------------------------------------------------===//

static bool isSystemHeader(std::string_view path) {
  return path.starts_with("/usr/include/") || path.starts_with("/usr/lib/") ||
         path.find("/include/c++/") != std::string_view::npos;
}

static std::string_view withoutFolder(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

SourceLocation::SourceLocation(std::source_location where) {
  if (!isSystemHeader(where.file_name()))
    *this = {std::string(withoutFolder(where.file_name())), where.line(), where.column()};
}

SourceLocation::SourceLocation(std::string file, unsigned line, unsigned column)
    : file(std::move(file)), line(line), column(column) {}

std::string SourceLocation::str() const {
  return line == 0 ? file : file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

//===- errors -----------------------------------------------------------------------------------------------------===//

Error::Error(std::string message, SourceLocation location, std::vector<Note> notes, int code)
    : said(std::move(message)), at(std::move(location)), more(std::move(notes)), exitCode(code) {
  text = (at.file.empty() ? "" : at.str() + ": ") + "error: " + said; // in-process compilation has no location
  for (const Note &note : more)
    text.append("\n").append(note.location.str()).append(": note: ").append(note.message);
}

//===- uncaught errors --------------------------------------------------------------------------------------------===//

/// Prints the uncaught error and exits with its code. Other exceptions are not printed.
static void endByError() {
  if (!std::current_exception())
    return;
  try {
    throw;
  } catch (const Error &error) {
    std::fflush(stdout); // the program's output precedes the error
    std::fprintf(stderr, "%s\n", error.what());
    std::fflush(nullptr);
    std::_Exit(error.code());
  } catch (...) { // the previous handler prints it
  }
}

static const std::terminate_handler before = std::set_terminate([] {
  endByError();
  before();
});

} // namespace sluice

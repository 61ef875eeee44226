// The text of errors: a compiler's diagnostic.
#include "sluice/error.h"

#include <string_view>

namespace sluice {

static std::string_view withoutFolder(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

SourceLocation::SourceLocation(std::source_location where)
    : file(withoutFolder(where.file_name())), line(where.line()), column(where.column()) {}

std::string SourceLocation::str() const { return file + ":" + std::to_string(line) + ":" + std::to_string(column); }

Error::Error(std::string message, SourceLocation location, std::vector<Note> notes)
    : said(std::move(message)), at(std::move(location)), more(std::move(notes)) {
  text = (at.file.empty() ? "" : at.str() + ": ") + "error: " + said; // in-process compilation has no place of its own
  for (const Note &note : more)
    text.append("\n").append(note.location.str()).append(": note: ").append(note.message);
}

} // namespace sluice

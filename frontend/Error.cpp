// The text of errors: a compiler's diagnostic.
#include "sluice/error.h"

#include <string_view>

namespace sluice {

static std::string_view withoutFolder(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

Place::Place(std::source_location where)
    : file(withoutFolder(where.file_name())), line(where.line()), column(where.column()) {}

std::string Place::str() const { return file + ":" + std::to_string(line) + ":" + std::to_string(column); }

Error::Error(std::string message, Place place, std::vector<Note> notes)
    : said(std::move(message)), at(std::move(place)), more(std::move(notes)) {
  text = (at.file.empty() ? "" : at.str() + ": ") + "error: " + said; // in-process compilation has no place of its own
  for (const Note &note : more)
    text.append("\n").append(note.place.str()).append(": note: ").append(note.message);
}

} // namespace sluice

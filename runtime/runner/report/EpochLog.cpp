#include "runtime/runner/report/EpochLog.h"

#include "runtime/io/File.h"

#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice::runtime {

/// The lines of completed epochs in the file at `path`, if it exists.
static std::string keptLines(const std::string &path, int64_t epochsDone) {
  struct stat facts;
  if (epochsDone == 0 || stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return {};
  Bytes content = readFile(path);
  std::istringstream lines(std::string(reinterpret_cast<const char *>(content.data()), content.size()));
  std::string kept, line;
  while (std::getline(lines, line)) {
    Json parsed = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    bool keep = parsed.is_object() && parsed.contains("epoch") && parsed["epoch"].is_number_integer() &&
                parsed["epoch"].get<int64_t>() <= epochsDone;
    if (keep)
      kept += line + "\n";
  }
  return kept;
}

EpochLog::EpochLog(const std::string &path, int64_t epochsDone) : path_(path) {
  if (path.empty())
    return;
  check(path, files::openForAppending(path, keptLines(path, epochsDone), descriptor_));
}

EpochLog::~EpochLog() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

void EpochLog::append(const Json &line) {
  if (descriptor_ < 0)
    return;
  check(path_, files::writeTo(descriptor_, line.dump() + "\n"));
}

} // namespace sluice::runtime

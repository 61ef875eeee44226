#include "runtime/runner/EpochLog.h"

#include "runtime/io/File.h"

#include <cerrno>
#include <fcntl.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice::runtime {

/// The lines of the first epochs in the file at `path`, if there is one.
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
  AtomicFile file(path);
  file.write(keptLines(path, epochsDone));
  file.commit();
  descriptor_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0)
    failSystem(path, "open for writing");
}

EpochLog::~EpochLog() {
  if (descriptor_ >= 0)
    close(descriptor_);
}

void EpochLog::append(const Json &line) {
  if (descriptor_ < 0)
    return;
  std::string text = line.dump() + "\n";
  ssize_t written = write(descriptor_, text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) {
    if (written >= 0)
      errno = ENOSPC;
    failSystem(path_, "write");
  }
}

} // namespace sluice::runtime

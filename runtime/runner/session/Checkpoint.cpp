#include "runtime/runner/session/Checkpoint.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/instance/Weights.h"
#include "runtime/io/File.h"
#include "runtime/runner/report/Terminal.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice::runtime {

namespace fs = std::filesystem;

static constexpr size_t kept = 3; // number of checkpoints
static constexpr std::string_view prefix = "step-", suffix = ".safetensors";

/// The process that holds a lock on this file, from the kernel's list of locks; nothing if it is not visible from here.
static std::optional<long> lockHolder(ino_t file) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    char kind[16];
    long process = 0;
    unsigned long long inode = 0;
    // "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    int fields = std::sscanf(line.c_str(), "%*s %15s %*s %*s %ld %*x:%*x:%llu", kind, &process, &inode);
    if (fields == 3 && std::string_view(kind) == "FLOCK" && inode == file && process > 0)
      return process;
  }
  return std::nullopt;
}

FolderLock::FolderLock(const std::string &path) : descriptor_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0)
    failSystem(path, "open the checkpoint folder");
  // A file system without locks runs unlocked.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return;
  struct stat facts;
  std::optional<long> holder = fstat(descriptor_, &facts) == 0 ? lockHolder(facts.st_ino) : std::nullopt;
  close(descriptor_);
  failInvalid(concat(path, ": another process", holder ? concat(", ", *holder, ",") : "",
                     " trains with this checkpoint folder"));
}

FolderLock::~FolderLock() { close(descriptor_); }

static void createFolder(const std::string &path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error)
    error = fs::is_directory(path) ? std::error_code() : std::make_error_code(std::errc::not_a_directory);
  if (error)
    failInvalid(concat(path, ": cannot create the checkpoint folder: ", error.message()));
}

CheckpointFolder::CheckpointFolder(const std::string &path, bool isReader) : path_(path) {
  if (isReader)
    return;
  createFolder(path);
  lock_.emplace(path);
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, error)) {
    std::string name = entry.path().filename();
    std::error_code ignored;
    if (name.starts_with(prefix) && name.find(files::temporaryMark) != std::string::npos)
      fs::remove(entry.path(), ignored);
  }
  if (error)
    failInvalid(concat(path, ": cannot read the checkpoint folder: ", error.message()));
}

std::vector<std::string> CheckpointFolder::files() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(path_, error)) {
    std::string name = entry.path().filename();
    if (name.starts_with(prefix) && name.ends_with(suffix))
      names.push_back(name);
  }
  std::sort(names.rbegin(), names.rend()); // steps have leading zeros
  return names;
}

static std::string doubleText(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value); // hexadecimal, so exact
  return text;
}

void CheckpointFolder::save(const Instance &instance, const TrainPosition &position) const {
  std::string sums;
  for (double sum : position.sums)
    sums += (sums.empty() ? "" : " ") + doubleText(sum);
  Metadata metadata = {{"format", "pt"},
                       {"sluice.checkpoint", "3"},
                       {"sluice.model", instance.plan().model},
                       {"sluice.states", std::to_string(instance.plan().stateHash())},
                       {"sluice.seed", std::to_string(position.seed)},
                       {"sluice.batch", std::to_string(position.batch)},
                       {"sluice.rows", std::to_string(position.rows)},
                       {"sluice.epoch", std::to_string(position.epoch)},
                       {"sluice.step", std::to_string(position.step)},
                       {"sluice.rows_done", std::to_string(position.rowsDone)},
                       {"sluice.sums", sums}};
  if (position.shuffles)
    metadata["sluice.shuffle"] = *position.shuffles ? "1" : "0";
  char name[64];
  std::snprintf(name, sizeof name, "step-%012lld.safetensors", static_cast<long long>(position.step));
  saveStates(instance, path_ + "/" + name, metadata);
  std::vector<std::string> names = files();
  std::error_code ignored; // an extra file is harmless
  for (size_t i = kept; i < names.size(); ++i)
    fs::remove(path_ + "/" + names[i], ignored);
}

namespace {

/// Reads numbers from a checkpoint's metadata.
class MetadataReader {
public:
  MetadataReader(const Metadata &metadata, const std::string &file) : metadata_(metadata), file_(file) {}

  bool has(const char *key) const { return metadata_.count(key); }

  const std::string &text(const char *key) const {
    auto found = metadata_.find(key);
    if (found == metadata_.end())
      failInvalid(concat(file_, ": not a checkpoint: it has no ", quote(key)));
    return found->second;
  }

  template <typename Int> Int integer(const char *key) const {
    const std::string &digits = text(key);
    Int value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || digits[0] == '-')
      failInvalid(concat(file_, ": damaged checkpoint: ", quote(key), " is ", quote(digits)));
    return value;
  }

  std::vector<double> doubles(const char *key) const {
    std::vector<double> values;
    const std::string &list = text(key);
    const char *next = list.c_str();
    while (*next) {
      char *end = nullptr;
      values.push_back(std::strtod(next, &end));
      if (end == next)
        failInvalid(concat(file_, ": damaged checkpoint: ", quote(key), " is ", quote(list)));
      next = end + (*end == ' ');
    }
    return values;
  }

private:
  const Metadata &metadata_;
  const std::string &file_;
};

} // namespace

static TrainPosition positionOf(const MetadataReader &metadata) {
  TrainPosition position;
  position.seed = metadata.integer<uint64_t>("sluice.seed");
  position.batch = metadata.integer<int64_t>("sluice.batch");
  position.rows = metadata.integer<int64_t>("sluice.rows");
  position.epoch = metadata.integer<int64_t>("sluice.epoch");
  position.step = metadata.integer<int64_t>("sluice.step");
  position.rowsDone = metadata.integer<int64_t>("sluice.rows_done");
  position.sums = metadata.doubles("sluice.sums");
  if (metadata.has("sluice.shuffle"))
    position.shuffles = metadata.integer<int>("sluice.shuffle") != 0;
  return position;
}

std::optional<TrainPosition> CheckpointFolder::load(Instance &instance) const {
  for (const std::string &name : files()) {
    std::string path = path_ + "/" + name;
    std::string otherModel;
    std::optional<TrainPosition> position;
    Status status = guarded([&] {
      SafetensorsFile file(path);
      MetadataReader metadata(file.metadata(), path);
      metadata.text("sluice.checkpoint");
      checkWhole(file, path);
      if (metadata.integer<uint64_t>("sluice.states") != instance.plan().stateHash()) {
        otherModel = metadata.text("sluice.model");
        return;
      }
      position = positionOf(metadata);
      loadStates(instance, file, path);
    });
    if (!otherModel.empty())
      failInvalid(concat(path, ": is a checkpoint of another model, ", quote(otherModel), "; this one is ",
                         quote(instance.plan().model), " and its states differ"));
    if (status.ok())
      return position;
    if (status.code != ExitCode::invalid)
      throw Error(status.code, status.message);
    talk(concat("warning: skipped a damaged checkpoint: ", status.message));
  }
  return std::nullopt;
}

} // namespace sluice::runtime

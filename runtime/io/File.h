// File access for the runtime: runtime/files/ with errors thrown as exceptions that name the file.
#pragma once

#include "runtime/files/OutputFile.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

using Bytes = std::vector<std::byte>;

/// A message such as "x.npy: cannot open: No such file or directory", from errno.
[[noreturn]] void failSystem(const std::string &path, const char *action);

/// Throws "x.npy: " and the failure, unless it is empty.
void check(const std::string &path, const files::Failure &failure);

/// The content of a regular file.
Bytes readFile(const std::string &path);

/// A file that appears under its name either complete or not at all; see files::OutputFile.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path) : path_(path) { check(path_, file_.open(path)); }

  void write(const void *data, size_t bytes) { write({static_cast<const char *>(data), bytes}); }
  void write(std::string_view text) { check(path_, file_.write(text)); }
  void commit() { check(path_, file_.commit()); }

private:
  std::string path_;
  files::OutputFile file_;
};

} // namespace sluice::runtime

// A memory-mapped file. If the file is truncated or its disk fails, the affected read reports an error; the system's
// SIGBUS is handled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

class MappedFile {
public:
  /// Maps a regular file. The first mapping installs a SIGBUS handler, which passes on signals of other causes.
  explicit MappedFile(const std::string &path);
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  const std::string &path() const { return path_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

  /// Copies bytes from offset `from`; the range must be within the file. Thread-safe.
  void read(int64_t from, std::span<std::byte> to) const;
  /// The same for up to `most` bytes; fewer only at the end of the file.
  std::vector<std::byte> read(int64_t from, int64_t most) const;
  /// Passes all bytes to `body`, which reads them in place, in this thread. Fails after it if the file was lost
  /// meanwhile: its bytes are then zeros. `body` may `read` other files.
  void use(const std::function<void(std::span<const std::byte>)> &body) const;

  /// For the handler: marks the file as lost and replaces its pages by zeros if the address is in the file.
  bool loseIfAt(const void *address);

private:
  void requireNotLost() const;

  std::string path_;
  std::byte *data_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<bool> isLost_ = false;
};

} // namespace sluice::runtime

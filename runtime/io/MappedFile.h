// A file that is looked at in memory and never read whole. What happens to it meanwhile, a cut or a disk that fails, is
// an error of the read that meets it, and not the signal that the system sends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

class MappedFile {
public:
  /// Maps a regular file. From the first one on, SIGBUS has a handler, which leaves the signals of others alone.
  explicit MappedFile(const std::string &path);
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  const std::string &path() const { return path_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

  /// Copies what begins at `from` and must lie in the file. Any thread may call this.
  void read(int64_t from, std::span<std::byte> to) const;
  /// The same for up to `most` bytes: fewer only at the end of the file.
  std::vector<std::byte> read(int64_t from, int64_t most) const;

  /// For the handler: forgets the file, of which something is not there; zeros take its place.
  bool loseIfAt(const void *address);

private:
  std::string path_;
  std::byte *data_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<bool> isLost_ = false;
};

} // namespace sluice::runtime

// The content: a line with the version; the fields of the kernel, in order; the BLAKE3 digest of the file's name and of
// everything before the digest. A number has 8 bytes, as in memory. A text is preceded by its length.
#include "passes/kernel/CachedKernelFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

namespace sluice::passes {

static constexpr llvm::StringLiteral kHead = "sluice kernel 1\n";
static constexpr size_t kChecksumBytes = 32;

static std::string checksumOf(llvm::StringRef content, llvm::StringRef name) {
  llvm::BLAKE3 hash;
  hash.update(name);
  hash.update(content);
  return llvm::toStringRef(hash.final()).str();
}

namespace {

class Writer {
public:
  template <typename Number> void field(Number &number) {
    static_assert(sizeof number == 8);
    content.append(reinterpret_cast<const char *>(&number), sizeof number);
  }
  void field(std::string &text) {
    uint64_t size = text.size();
    field(size);
    content += text;
  }

  std::string content{kHead};
};

/// A field that the content is too short for is 0 or empty.
class Reader {
public:
  explicit Reader(llvm::StringRef content) : rest(content) {}

  template <typename Number> void field(Number &number) {
    llvm::StringRef bytes = take(sizeof number);
    number = Number();
    memcpy(&number, bytes.data(), bytes.size());
  }
  void field(std::string &text) {
    uint64_t size = 0;
    field(size);
    text = take(size).str();
  }

  bool isDone() const { return !isShort && rest.empty(); }

private:
  llvm::StringRef take(uint64_t count) {
    isShort |= count > rest.size();
    llvm::StringRef taken = isShort ? llvm::StringRef() : rest.take_front(count);
    rest = rest.drop_front(taken.size());
    return taken;
  }

  llvm::StringRef rest;
  bool isShort = false;
};

} // namespace

template <typename Stream> static void visitFields(Stream &stream, CachedKernel &kernel) {
  KernelLaunch &launch = kernel.launch;
  stream.field(launch.kind);
  sluice_cost &cost = launch.cost;
  for (int64_t *figure : {&cost.flops, &cost.flops_per_row, &cost.bytes, &cost.bytes_per_row, &launch.workspaceBytes})
    stream.field(*figure);
  stream.field(cost.lanes);
  uint64_t stages = launch.stages.size();
  stream.field(stages);
  launch.stages.resize(stages);
  for (KernelLaunch::Stage &stage : launch.stages) {
    stream.field(stage.symbol);
    stream.field(stage.tasks);
    stream.field(stage.rowsPerTask);
  }
  stream.field(kernel.object);
}

std::string writeCachedKernel(CachedKernel kernel, llvm::StringRef name) {
  Writer writer;
  visitFields(writer, kernel);
  return writer.content + checksumOf(writer.content, name);
}

std::shared_ptr<const CachedKernel> readCachedKernel(llvm::StringRef content, llvm::StringRef name) {
  llvm::StringRef checksum = content.take_back(kChecksumBytes);
  content = content.drop_back(checksum.size());
  if (checksumOf(content, name) != checksum || !content.consume_front(kHead))
    return nullptr;
  auto kernel = std::make_shared<CachedKernel>(CachedKernel{KernelLaunch(sluice_launch_info{}, ""), ""});
  Reader reader(content);
  visitFields(reader, *kernel);
  return reader.isDone() ? kernel : nullptr;
}

} // namespace sluice::passes

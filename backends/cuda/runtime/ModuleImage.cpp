#include "backends/cuda/runtime/ModuleImage.h"

#include "backends/cuda/runtime/Error.h"

#include <sstream>

namespace sluice::cuda {

static constexpr std::string_view kFirstLine = "sluice cuda 1";

namespace {

class Reader {
public:
  explicit Reader(std::string_view image) : rest(image) {}

  ModuleImage read() {
    if (nextLine() != kFirstLine)
      fail("is not '" + std::string(kFirstLine) + "'");
    for (std::string line = nextLine(); line != "end"; line = nextLine())
      take(line);
    for (size_t i = 0; i < image.codes.size(); ++i)
      image.codes[i].bytes = bytes(sizes[i]);
    return std::move(image);
  }

private:
  [[noreturn]] void fail(const std::string &why) const {
    throw Error(SLUICE_INVALID, "cuda: line " + std::to_string(lines) + " of a module " + why);
  }

  std::string nextLine() {
    ++lines;
    size_t end = rest.find('\n');
    if (end == std::string_view::npos)
      fail("does not end");
    std::string line(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    return line;
  }

  void take(const std::string &text) {
    std::istringstream line(text);
    std::string what, name;
    int64_t size = -1;
    ImageFunction function;
    line >> what >> name;
    if (what == "function")
      line >> function.tasks >> function.rowsPerTask >> function.threads;
    else
      line >> size;
    bool isWhole = line && (line >> std::ws).eof();
    if (isWhole && what == "kernel" && size >= 0)
      image.kernels.push_back({name, size_t(size), {}});
    else if (isWhole && what == "code" && size >= 0)
      image.codes.push_back({name, {}}), sizes.push_back(size_t(size));
    else if (isWhole && what == "function" && !image.kernels.empty() && function.tasks >= 0 &&
             function.rowsPerTask >= 0 && function.threads > 0)
      image.kernels.back().functions.push_back({name, function.tasks, function.rowsPerTask, function.threads});
    else
      fail("is '" + text + "'");
  }

  std::string_view bytes(size_t count) {
    if (count > rest.size())
      fail("is followed by too few bytes of code");
    std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }

  std::string_view rest;
  ModuleImage image;
  std::vector<size_t> sizes; // of the codes
  size_t lines = 0;
};

} // namespace

ModuleImage readModuleImage(std::string_view image) { return Reader(image).read(); }

} // namespace sluice::cuda

// Devices as text.
#include "sluice/device.h"
#include "sluice/error.h"

#include <charconv>
#include <ostream>

namespace sluice {

Device cpu(int) { return Device(Device::Kind::cpu, 0, ""); }

Device gpu(int index, Device::Where where) {
  if (index < 0)
    throw Error("gpu(" + std::to_string(index) + "): devices are numbered from 0", where);
  return Device(Device::Kind::gpu, index, "");
}

std::string Device::str() const {
  std::string i = std::to_string(number);
  if (!hostName.empty())
    return hostName + "/device:" + (type == Kind::cpu ? "CPU:" : "GPU:") + i;
  return type == Kind::cpu ? "cpu()" : "gpu(" + i + ")";
}

std::ostream &operator<<(std::ostream &os, const Device &device) { return os << device.str(); }

//===- parsing ----------------------------------------------------------------------------------------------------===//

namespace {

/// A cursor over a spelling. Every function returns whether it consumed text.
class Spelling {
public:
  explicit Spelling(std::string_view text) : rest(text) {}

  bool take(std::string_view word) {
    if (!rest.starts_with(word))
      return false;
    rest.remove_prefix(word.size());
    return true;
  }
  bool takeNumber(int &number) {
    bool isDigit = !rest.empty() && rest.front() >= '0' && rest.front() <= '9';
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (!isDigit || error != std::errc())
      return false;
    rest.remove_prefix(std::size_t(end - rest.data()));
    return true;
  }
  bool takeName() {
    std::size_t size = std::min(rest.find_first_of("/: \t\n"), rest.size());
    rest.remove_prefix(size);
    return size > 0;
  }
  bool atEnd() const { return rest.empty(); }
  std::size_t left() const { return rest.size(); }

private:
  std::string_view rest;
};

} // namespace

/// "", ":1" or "(1)", and "()" after it.
static bool takeIndex(Spelling &text, int &index) {
  if (text.atEnd() || text.take("()"))
    return true;
  if (text.take("("))
    return text.takeNumber(index) && text.take(")");
  return text.take(":") && text.takeNumber(index);
}

/// "/job:worker/replica:0/task:1", from the job on; consumes it.
static bool takeHost(Spelling &text) {
  int number = 0;
  return text.take("/job:") && text.takeName() && (!text.take("/replica:") || text.takeNumber(number)) &&
         (!text.take("/task:") || text.takeNumber(number));
}

Device::Device(std::string_view spelling, Parse, Where where) : type(Kind::cpu), number(0) {
  Spelling text(spelling);
  bool isRight = true;
  if (spelling.starts_with("/")) {
    if (spelling.starts_with("/job:")) {
      isRight = takeHost(text);
      hostName = spelling.substr(0, spelling.size() - text.left());
    }
    isRight = isRight && text.take("/");
    text.take("device:");
    bool isCpu = text.take("CPU") || text.take("cpu");
    type = isCpu ? Kind::cpu : Kind::gpu;
    isRight = isRight && (isCpu || text.take("GPU") || text.take("gpu")) && text.take(":") && text.takeNumber(number);
  } else {
    bool isCpu = text.take("cpu");
    type = isCpu ? Kind::cpu : Kind::gpu;
    isRight = (isCpu || text.take("gpu") || text.take("cuda")) && takeIndex(text, number);
  }
  if (!isRight || !text.atEnd())
    throw Error("'" + std::string(spelling) + "' names no device; cpu, gpu, gpu:1, cuda:1, /GPU:1 and " +
                    "/job:worker/task:0/device:GPU:1 do",
                where);
  if (type == Kind::cpu)
    number = 0;
}

} // namespace sluice

#include "runtime/io/Npy.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/InputFile.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace sluice::runtime {

static constexpr std::string_view magic("\x93NUMPY", 6);
static constexpr size_t mostDims = 32;
static constexpr int64_t mostHeaderBytes = npyStartBytes - 12;

/// Whether `descr` names the type. The byte order of a one-byte type is any of '<', '=' and '|'.
static bool names(std::string_view descr, DType type) {
  std::string_view name = npyNameOf(type);
  bool isByte = sizeOf(type) == 1 && descr.size() == name.size() &&
                std::string_view("<=|").find(descr.front()) != std::string_view::npos;
  // numpy without ml_dtypes drops the byte order of bf16 when it rewrites a file.
  bool isPlain = type == DType::bf16 && descr == "|V2";
  return descr == name || isPlain || (isByte && descr.substr(1) == name.substr(1));
}

namespace {

/// The header: a Python dictionary with the keys descr, fortran_order and shape.
class HeaderParser {
public:
  HeaderParser(std::string_view text, const std::string &name) : text_(text), name_(name) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      field(key);
      if (!accept(',') && !peek('}'))
        fail("expected ',' or '}'");
    }
    skipBlanks();
    if (position_ != text_.size())
      fail("text after the closing '}'");
    if (!haveDescr_ || !haveOrder_ || !haveShape_)
      fail("it needs 'descr', 'fortran_order' and 'shape'");
    return std::move(header_);
  }

private:
  void field(const std::string &key) {
    if (key == "descr" && !haveDescr_) {
      haveDescr_ = true;
      header_.dtype = descr();
    } else if (key == "fortran_order" && !haveOrder_) {
      haveOrder_ = true;
      order();
    } else if (key == "shape" && !haveShape_) {
      haveShape_ = true;
      shape();
    } else {
      fail(concat("unexpected or repeated key ", quote(key)));
    }
  }

  DType descr() {
    skipBlanks();
    if (position_ < text_.size() && text_[position_] == '[')
      fail("structured types are not supported");
    std::string descr = string();
    for (DType type : allDTypes())
      if (names(descr, type))
        return type;
    if (descr.starts_with(">"))
      failInvalid(
          concat(name_, ": big-endian data ", quote(descr), "; save it with .astype('<", descr.substr(1), "')"));
    std::string known;
    for (DType type : allDTypes())
      known += concat(known.empty() ? "" : ", ", npyNameOf(type).substr(1));
    failInvalid(concat(name_, ": element type ", quote(descr), " is not supported; supported: ", known));
  }

  void order() {
    if (acceptWord("False"))
      return;
    if (acceptWord("True"))
      failInvalid(concat(name_, ": is in Fortran order; save it with numpy.ascontiguousarray(x)"));
    fail("'fortran_order' must be True or False");
  }

  void shape() {
    expect('(');
    while (!accept(')')) {
      if (header_.shape.size() == mostDims)
        fail(concat("more than ", mostDims, " dimensions"));
      header_.shape.push_back(integer());
      if (!accept(',') && !peek(')'))
        fail("expected ',' or ')' in the shape");
    }
  }

  int64_t integer() {
    skipBlanks();
    int64_t value = 0;
    size_t start = position_;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(text_[position_] - '0'), &value))
        fail("a size in the shape is too large");
      ++position_;
    }
    if (position_ == start)
      fail("a size in the shape is not a whole number");
    return value;
  }

  std::string string() {
    skipBlanks();
    if (position_ == text_.size() || (text_[position_] != '\'' && text_[position_] != '"'))
      fail("expected a string");
    size_t end = text_.find(text_[position_], position_ + 1);
    if (end == std::string_view::npos)
      fail("a string is not closed");
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }

  void skipBlanks() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\n' || text_[position_] == '\t'))
      ++position_;
  }
  bool peek(char c) {
    skipBlanks();
    return position_ < text_.size() && text_[position_] == c;
  }
  bool accept(char c) {
    bool found = peek(c);
    position_ += found;
    return found;
  }
  bool acceptWord(std::string_view word) {
    skipBlanks();
    bool found = text_.substr(position_).starts_with(word);
    position_ += found ? word.size() : 0;
    return found;
  }
  void expect(char c) {
    if (!accept(c))
      fail(concat("expected '", std::string(1, c), "'"));
  }
  [[noreturn]] void fail(const std::string &message) {
    failInvalid(concat(name_, ": damaged npy header at character ", position_, ": ", message));
  }

  std::string_view text_;
  const std::string &name_;
  size_t position_ = 0;
  NpyHeader header_;
  bool haveDescr_ = false, haveOrder_ = false, haveShape_ = false;
};

/// The range of the header's text in the file.
struct HeaderRange {
  size_t begin, bytes;
};

} // namespace

/// `start` is the beginning of a file of `fileBytes` bytes.
static HeaderRange findHeader(std::span<const std::byte> start, int64_t fileBytes, const std::string &name) {
  if (start.size() < 10 || std::memcmp(start.data(), magic.data(), magic.size()) != 0)
    failInvalid(concat(name, ": not an npy file"));
  int version = std::to_integer<int>(start[6]);
  if (version < 1 || version > 3)
    failInvalid(concat(name, ": npy version ", version, " is not supported; versions 1 to 3 are"));
  size_t lengthBytes = version == 1 ? 2 : 4;
  size_t begin = 8 + lengthBytes;
  size_t bytes = 0;
  for (size_t i = 0; i < lengthBytes && 8 + i < start.size(); ++i)
    bytes |= std::to_integer<size_t>(start[8 + i]) << 8 * i;
  if (fileBytes < static_cast<int64_t>(begin + bytes))
    failInvalid(concat(name, ": truncated: the header claims ", bytes, " bytes, the file has ", fileBytes));
  if (start.size() < begin + bytes)
    failInvalid(concat(name, ": the header claims ", bytes, " bytes, more than the limit of ", mostHeaderBytes));
  return {begin, bytes};
}

/// Parses the header. Does not check that the file contains the elements.
static NpyHeader readHeader(std::span<const std::byte> start, int64_t fileBytes, const std::string &name) {
  HeaderRange place = findHeader(start, fileBytes, name);
  std::string_view text(reinterpret_cast<const char *>(start.data()) + place.begin, place.bytes);
  NpyHeader header = HeaderParser(text, name).parse();
  std::optional<int64_t> elements = checkedElements(header.shape, sizeOf(header.dtype));
  if (!elements)
    failInvalid(concat(name, ": the shape ", shapeText(header.shape), " is too large"));
  header.begin = static_cast<int64_t>(place.begin + place.bytes);
  header.bytes = *elements * static_cast<int64_t>(sizeOf(header.dtype));
  return header;
}

NpyHeader parseNpyHeader(std::span<const std::byte> start, int64_t fileBytes, const std::string &name) {
  NpyHeader header = readHeader(start, fileBytes, name);
  if (fileBytes - header.begin != header.bytes)
    failInvalid(concat(name, ": ", typeText(header.dtype, header.shape), " needs ", header.bytes, " bytes, but ",
                       fileBytes - header.begin, " follow the header"));
  return header;
}

HostTensor parseNpy(std::span<const std::byte> content, const std::string &name) {
  NpyHeader header = parseNpyHeader(content, static_cast<int64_t>(content.size()), name);
  auto data = content.subspan(static_cast<size_t>(header.begin));
  HostTensor tensor{header.dtype, header.shape, Bytes(data.begin(), data.end())};
  bool damagedBool = tensor.dtype == DType::boolean && std::any_of(data.begin(), data.end(), [](std::byte byte) {
                       return std::to_integer<int>(byte) > 1;
                     });
  if (damagedBool)
    failInvalid(concat(name, ": a boolean is neither 0 nor 1"));
  return tensor;
}

HostTensor readNpy(const std::string &path) { return parseNpy(readFile(path), path); }

/// Reads until `content` has `wanted` bytes or the file ends. Memory grows with the bytes read, not with `wanted`: a
/// header may claim any size.
static void readUpTo(int descriptor, size_t wanted, Bytes &content, const std::string &name) {
  while (content.size() < wanted) {
    size_t have = content.size();
    uint64_t got = 0;
    content.resize(std::min(wanted, std::max<size_t>(2 * have, npyStartBytes)));
    check(name, files::readFrom(descriptor, content.data() + have, content.size() - have, got));
    bool isAtEnd = have + got < content.size();
    content.resize(have + got);
    if (isAtEnd)
      return;
  }
}

HostTensor readNpyStream(const std::string &path, const std::string &name) {
  int descriptor = -1;
  uint64_t bytes = 0;
  check(name, files::openForReading(path, files::Source::regularOrPipe, descriptor, bytes));
  Bytes content;
  Status status = guarded([&] {
    readUpTo(descriptor, npyStartBytes, content, name);
    if (content.size() < static_cast<size_t>(npyStartBytes))
      return; // the whole file
    // A pipe has size 0; it has at least the bytes that were read.
    NpyHeader header = readHeader(content, std::max<int64_t>(npyStartBytes, static_cast<int64_t>(bytes)), name);
    // The extra byte detects trailing data.
    readUpTo(descriptor, static_cast<size_t>(header.begin + header.bytes) + 1, content, name);
  });
  close(descriptor);
  if (!status.ok())
    throw Error(status.code, status.message);
  if (content.empty())
    failInvalid(concat(name, ": is empty"));
  return parseNpy(content, name);
}

/// The header of a file of version 1.0. Blanks pad it so that the elements begin at a multiple of 64 bytes.
static std::string headerOf(DType dtype, const Shape &sizes) {
  std::string shape;
  for (int64_t size : sizes)
    shape += concat(size, ", ");
  if (sizes.size() > 1)
    shape.resize(shape.size() - 2);
  if (sizes.size() == 1)
    shape.pop_back();
  std::string header = concat("{'descr': '", npyNameOf(dtype), "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const char version[] = {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return concat(magic, std::string_view(version, sizeof version), header);
}

void writeNpy(const std::string &path, const HostTensor &tensor) {
  writeNpy(path, tensor.dtype, tensor.shape, tensor.data);
}

void writeNpy(const std::string &path, DType dtype, const Shape &shape, std::span<const std::byte> elements) {
  AtomicFile file(path);
  file.write(headerOf(dtype, shape));
  file.write(elements.data(), elements.size());
  file.commit();
}

void printNpy(const HostTensor &tensor) {
  const std::string name = "standard output";
  check(name, files::writeTo(STDOUT_FILENO, headerOf(tensor.dtype, tensor.shape)));
  check(name, files::writeTo(STDOUT_FILENO, {reinterpret_cast<const char *>(tensor.data.data()), tensor.data.size()}));
}

} // namespace sluice::runtime

#include "runtime/data/text/Tokens.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/io/Npy.h"

#include <cstring>
#include <mutex>
#include <utility>

namespace sluice::runtime {

//===- streams ----------------------------------------------------------------------------------------------------===//

namespace {
/// Tokens of one integer width in a mapped file.
template <typename Element> class MappedTokens final : public TokenStream {
public:
  MappedTokens(std::shared_ptr<const MappedFile> file, int64_t begin, int64_t count, Vocabulary vocabulary)
      : TokenStream(file->path(), count, std::move(vocabulary)), mapped_(std::move(file)), begin_(begin) {}

  void read(int64_t from, std::span<int32_t> to) const override {
    std::vector<Element> elements(to.size());
    mapped_->read(begin_ + from * static_cast<int64_t>(sizeof(Element)), std::as_writable_bytes(std::span(elements)));
    for (size_t i = 0; i < to.size(); ++i) {
      if (!std::in_range<int32_t>(elements[i]))
        failInvalid(concat(file(), ": token ", from + static_cast<int64_t>(i), " is ", elements[i],
                           ", which is beyond 32 bits"));
      to[i] = static_cast<int32_t>(elements[i]);
    }
  }

private:
  std::shared_ptr<const MappedFile> mapped_;
  int64_t begin_;
};
} // namespace

std::shared_ptr<const TokenStream> mappedTokens(const std::string &path, int64_t begin, int64_t count, int64_t width,
                                                Vocabulary vocabulary) {
  auto file = std::make_shared<const MappedFile>(path);
  switch (width) {
  case 1:
    return std::make_shared<MappedTokens<uint8_t>>(file, begin, count, std::move(vocabulary));
  case 2:
    return std::make_shared<MappedTokens<uint16_t>>(file, begin, count, std::move(vocabulary));
  case 4:
    return std::make_shared<MappedTokens<int32_t>>(file, begin, count, std::move(vocabulary));
  default:
    return std::make_shared<MappedTokens<int64_t>>(file, begin, count, std::move(vocabulary));
  }
}

//===- windows ----------------------------------------------------------------------------------------------------===//

namespace {
/// Consecutive windows of a stream, offset by `shift` tokens.
class WindowColumn final : public Column {
public:
  WindowColumn(ColumnHeader header, std::shared_ptr<const TokenStream> stream, int64_t shift)
      : Column(std::move(header)), stream_(std::move(stream)), shift_(shift) {}

private:
  void copy(int64_t row, std::span<std::byte> to) const override {
    std::vector<int32_t> tokens(to.size() / sizeof(int32_t));
    stream_->read(row * static_cast<int64_t>(tokens.size()) + shift_, tokens);
    std::memcpy(to.data(), tokens.data(), to.size());
  }

  std::shared_ptr<const TokenStream> stream_;
  int64_t shift_;
};

/// Opens the stream once for both columns.
struct SharedStream {
  std::function<std::shared_ptr<const TokenStream>()> open;
  std::once_flag opened;
  std::shared_ptr<const TokenStream> stream;

  const std::shared_ptr<const TokenStream> &get() {
    std::call_once(opened, [&] { stream = open(); });
    return stream;
  }
};
} // namespace

static std::unique_ptr<Column> openWindows(const std::shared_ptr<const TokenStream> &stream, const std::string &name,
                                           int64_t shift, const Shape &row) {
  int64_t length = elementsOf(row);
  if (stream->count() == 0)
    failInvalid(concat(stream->file(), ": is empty"));
  int64_t rows = (stream->count() - 1) / length;
  if (rows == 0)
    failInvalid(concat(stream->file(), ": has ", stream->count(), " tokens, but a row has ", length,
                       " and needs one more for its last label"));
  return std::make_unique<WindowColumn>(ColumnHeader{name, stream->file(), DType::i32, row, rows, stream->vocabulary()},
                                        stream, shift);
}

std::vector<Table::Source> tokenColumns(std::function<std::shared_ptr<const TokenStream>()> open) {
  auto shared = std::make_shared<SharedStream>(std::move(open));
  std::vector<Table::Source> columns;
  for (auto [name, shift] : {std::pair("tokens", 0), std::pair("label", 1)})
    columns.push_back(
        {name, [shared, name, shift](const Shape &row) { return openWindows(shared->get(), name, shift, row); }});
  return columns;
}

//===- files ------------------------------------------------------------------------------------------------------===//

std::vector<Table::Source> npyTokens(const std::string &path) {
  NpyHeader npy;
  Status status = guarded([&] {
    MappedFile file(path);
    npy = parseNpyHeader(file.read(0, npyStartBytes), file.bytes(), path);
  });
  if (!status.ok() || npy.shape.size() != 1 || isFloat(npy.dtype) || npy.dtype == DType::boolean)
    return {};
  return tokenColumns([path, npy] {
    return mappedTokens(path, npy.begin, npy.shape.front(), static_cast<int64_t>(sizeOf(npy.dtype)));
  });
}

Table binaryTokens(const std::string &path) {
  int64_t width = path.ends_with(".i32.bin") ? 4 : 2;
  return {path, tokenColumns([path, width] {
            int64_t bytes = MappedFile(path).bytes();
            if (bytes % width != 0)
              failInvalid(concat(path, ": has ", bytes, " bytes, which are no tokens of ", width, " bytes each"));
            return mappedTokens(path, 0, bytes / width, width);
          })};
}

Table textTokens(const std::string &path) {
  return {path, tokenColumns([path] { return mappedTokens(path, 0, MappedFile(path).bytes(), 1, {.size = 256}); })};
}

} // namespace sluice::runtime

// Token streams cut into windows. A row has as many consecutive tokens as the input takes.
#pragma once

#include "runtime/data/tables/Table.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace sluice::runtime {

/// A sequence of tokens.
class TokenStream {
public:
  TokenStream(std::string file, int64_t count, Vocabulary vocabulary)
      : file_(std::move(file)), count_(count), vocabulary_(std::move(vocabulary)) {}
  TokenStream(const TokenStream &) = delete;
  TokenStream &operator=(const TokenStream &) = delete;
  virtual ~TokenStream() = default;

  const std::string &file() const { return file_; }
  const Vocabulary &vocabulary() const { return vocabulary_; }
  int64_t count() const { return count_; }
  /// Reads tokens from number `from` on. Thread-safe.
  virtual void read(int64_t from, std::span<int32_t> to) const = 0;

private:
  std::string file_;
  int64_t count_;
  Vocabulary vocabulary_;
};

/// The `count` elements of a file from offset `begin` on. `width`, their size in bytes, selects u8, u16, i32 or i64.
std::shared_ptr<const TokenStream> mappedTokens(const std::string &path, int64_t begin, int64_t count, int64_t width,
                                                Vocabulary vocabulary = {});

/// The columns `tokens` and `label` of a stream, which `open` opens once for both. Row i of `tokens` has the T tokens
/// from i * T on; row i of `label` is shifted by one token. T is the length of the input.
std::vector<Table::Source> tokenColumns(std::function<std::shared_ptr<const TokenStream>()> open);

/// The token columns of an .npy file of one-dimensional integers; else empty.
std::vector<Table::Source> npyTokens(const std::string &path);
/// A .bin file of tokens: i32 for .i32.bin, else u16.
Table binaryTokens(const std::string &path);
/// A text whose tokens are its bytes.
Table textTokens(const std::string &path);

} // namespace sluice::runtime

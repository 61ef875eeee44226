// Streams of tokens, cut into windows: the words of a text as numbers, one behind another, of which a row is as many as an
// input takes.
#pragma once

#include "runtime/data/tables/Table.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace sluice::runtime {

/// Tokens one behind another.
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
  /// Tokens from number `from` on. Any thread may call this.
  virtual void read(int64_t from, std::span<int32_t> to) const = 0;

private:
  std::string file_;
  int64_t count_;
  Vocabulary vocabulary_;
};

/// Elements of a file, from `begin` on: u8, u16, i32 or i64, as their bytes tell.
std::shared_ptr<const TokenStream> mappedTokens(const std::string &path, int64_t begin, int64_t count, int64_t width,
                                                Vocabulary vocabulary = {});

/// The columns of windows of a stream, which `open` opens once: row i of `tokens` has the tokens from i * T on, of `label` those
/// behind them, where T is what an input takes.
std::vector<Table::Source> tokenColumns(std::function<std::shared_ptr<const TokenStream>()> open);

/// Those of an .npy file, if it is one of integers in one dimension.
std::vector<Table::Source> npyTokens(const std::string &path);
/// A .bin file of tokens: of i32 where it ends in .i32.bin, else of u16.
Table binaryTokens(const std::string &path);
/// A text, whose bytes are its tokens.
Table textTokens(const std::string &path);

} // namespace sluice::runtime

// GPT-2's tokenizer: splits a text into words and merges the bytes of each word in pairs, by a ranked list of merges.
#pragma once

#include "runtime/data/text/Tokens.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sluice::runtime {

class Bpe {
public:
  /// Reads a folder in the format of transformers: `vocab.json` maps tokens to numbers, `merges.txt` lists merges by
  /// rank. Fails with the file and the line if a merge does not produce a token.
  explicit Bpe(const std::string &folder);

  /// The tokens of a UTF-8 text. Messages begin with `name`. Special tokens are not recognized.
  std::vector<int32_t> encode(std::string_view text, const std::string &name) const;
  /// The bytes of a token; empty if the token is unknown.
  std::string textOf(int32_t token) const;
  /// The largest token number plus one.
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }

  /// The vocabulary file, with `size()`.
  Vocabulary vocabulary() const;

private:
  struct Merge {
    int32_t rank, token;
  };

  void readVocabulary(const std::string &path);
  void readMerges(const std::string &path);
  /// The number of a token; negative if the token is unknown.
  int32_t numberOf(const std::string &token) const;
  std::vector<int32_t> encodeWord(std::string_view word, const std::string &name) const;

  std::string vocabulary_; ///< name of the vocabulary file
  std::unordered_map<std::string, int32_t> numbers_;
  std::map<std::pair<int32_t, int32_t>, Merge> merges_;
  std::array<int32_t, 256> bytes_{}; ///< the tokens of single bytes
  std::vector<std::string> texts_;   ///< text of each token, as in the vocabulary
};

/// A text as tokens of the tokenizer in `folder`.
Table bpeTokens(const std::string &path, const std::string &folder);

} // namespace sluice::runtime

// GPT-2's tokens: a text is split into words, and the bytes of each are merged in pairs, as often as a list of merges has one.
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
  /// Of a folder with `vocab.json`, the numbers of tokens, and `merges.txt`, in their order, as transformers writes them. Fails
  /// if a merge makes no token, naming file and line.
  explicit Bpe(const std::string &folder);

  /// The tokens of a text in UTF-8; `name` begins messages. No token is special.
  std::vector<int32_t> encode(std::string_view text, const std::string &name) const;
  /// The bytes of a token; nothing of a number that is none.
  std::string textOf(int32_t token) const;
  /// All tokens are below.
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }

  /// One more than the largest token.
  Vocabulary vocabulary() const;

private:
  struct Merge {
    int32_t rank, token;
  };

  void readVocabulary(const std::string &path);
  void readMerges(const std::string &path);
  /// The number of a token; negative if there is none.
  int32_t numberOf(const std::string &token) const;
  std::vector<int32_t> encodeWord(std::string_view word, const std::string &name) const;

  std::string vocabulary_; ///< the file's name
  std::unordered_map<std::string, int32_t> numbers_;
  std::map<std::pair<int32_t, int32_t>, Merge> merges_;
  std::array<int32_t, 256> bytes_{}; ///< the tokens of single bytes
  std::vector<std::string> texts_;   ///< of each token, as in the vocabulary
};

/// A text in these tokens.
Table bpeTokens(const std::string &path, const std::string &folder);

} // namespace sluice::runtime

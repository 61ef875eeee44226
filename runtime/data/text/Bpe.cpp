#include "runtime/data/text/Bpe.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/text/UnicodeClasses.h"
#include "runtime/io/File.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>

namespace sluice::runtime {

//===- characters -------------------------------------------------------------------------------------------------===//

/// The character that represents a byte in a vocabulary: the byte itself if printable, else a character from U+0100 on.
static std::string characterOf(int byte) {
  auto isSeen = [](int b) { return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae; };
  int unseen = 0;
  for (int b = 0; b < byte; ++b)
    unseen += !isSeen(b);
  int code = isSeen(byte) ? byte : 0x100 + unseen;
  if (code < 0x80)
    return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

namespace {
/// The position and code point of a character.
struct Character {
  size_t begin;
  char32_t code;
  CharacterClass kind;
};
} // namespace

/// The length of the character that begins with this byte; 0 if the byte cannot begin a character.
static size_t lengthOf(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/// The code point at an offset; nothing if the text is not valid UTF-8.
static std::optional<char32_t> decode(std::string_view text, size_t at) {
  auto first = static_cast<unsigned char>(text[at]);
  size_t length = lengthOf(first);
  if (length == 0 || at + length > text.size())
    return std::nullopt;
  char32_t code = length == 1 ? first : first & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xc0) != 0x80)
      return std::nullopt;
    code = code << 6 | (next & 0x3f);
  }
  static constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  bool isSurrogate = code >= 0xd800 && code < 0xe000;
  return code < least[length] || code > 0x10ffff || isSurrogate ? std::nullopt : std::optional(code);
}

static std::vector<Character> charactersOf(std::string_view text, const std::string &name) {
  std::vector<Character> characters;
  for (size_t at = 0; at < text.size(); at += lengthOf(static_cast<unsigned char>(text[at]))) {
    std::optional<char32_t> code = decode(text, at);
    if (!code)
      failInvalid(concat(name, ": byte ", at, " is not valid UTF-8"));
    characters.push_back({at, *code, classOf(*code)});
  }
  return characters;
}

//===- words ------------------------------------------------------------------------------------------------------===//

/// The length of the contraction at `at`, one of 's 't 're 've 'm 'll 'd; 0 if there is none.
static size_t contractionAt(const std::vector<Character> &text, size_t at) {
  if (text[at].code != '\'')
    return 0;
  for (std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    bool isHere = at + ending.size() < text.size();
    for (size_t i = 0; isHere && i < ending.size(); ++i)
      isHere = text[at + 1 + i].code == static_cast<char32_t>(ending[i]);
    if (isHere)
      return 1 + ending.size();
  }
  return 0;
}

/// The end of the characters from `at` on that have the class of the first.
static size_t endOfKind(const std::vector<Character> &text, size_t at) {
  size_t end = at;
  while (end < text.size() && text[end].kind == text[at].kind)
    ++end;
  return end;
}

/// The end of the word that begins at `at`, by GPT-2's expression 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
/// ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
static size_t endOfWord(const std::vector<Character> &text, size_t at) {
  if (size_t length = contractionAt(text, at))
    return at + length;
  bool hasSpace = text[at].code == ' ' && at + 1 < text.size() && text[at + 1].kind != CharacterClass::space;
  if (hasSpace || text[at].kind != CharacterClass::space)
    return endOfKind(text, at + hasSpace);
  size_t end = endOfKind(text, at); // the last space belongs to the next word
  return end < text.size() && end > at + 1 ? end - 1 : end;
}

//===- vocabulary -------------------------------------------------------------------------------------------------===//

namespace {
/// Reads `{"token": number, ...}` event by event. Any other value is an error, so deep nesting ends at once.
class VocabularyReader : public nlohmann::json_sax<nlohmann::json> {
public:
  VocabularyReader(const std::string &file, std::unordered_map<std::string, int32_t> &numbers)
      : file_(file), numbers_(numbers) {}

  bool start_object(std::size_t) override {
    if (isOpen_)
      fail("an object in it");
    return isOpen_ = true;
  }
  bool end_object() override { return true; }
  bool key(string_t &key) override {
    key_ = std::move(key);
    return isOpen_;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!isOpen_ || value > INT32_MAX)
      fail(concat(quote(key_), " is ", value));
    if (!numbers_.emplace(key_, static_cast<int32_t>(value)).second)
      fail(concat(quote(key_), " appears twice"));
    return true;
  }
  bool number_integer(number_integer_t) override { fail(concat(quote(key_), " is negative")); }
  bool number_float(number_float_t, const string_t &) override { fail(concat(quote(key_), " is a fraction")); }
  bool string(string_t &) override { fail(concat(quote(key_), " is a string")); }
  bool start_array(std::size_t) override { fail("a list in it"); }
  bool end_array() override { return true; }
  bool null() override { fail(concat(quote(key_), " is null")); }
  bool boolean(bool) override { fail(concat(quote(key_), " is a boolean")); }
  bool binary(binary_t &) override { fail("binary data in it"); }
  bool parse_error(std::size_t, const std::string &, const nlohmann::json::exception &error) override {
    fail(error.what());
  }

private:
  [[noreturn]] void fail(const std::string &message) {
    failInvalid(concat(file_, ": is not a vocabulary, {\"TOKEN\": NUMBER, ...}: ", message));
  }

  const std::string &file_;
  std::unordered_map<std::string, int32_t> &numbers_;
  std::string key_;
  bool isOpen_ = false;
};
} // namespace

static std::string readText(const std::string &path) {
  Bytes bytes = readFile(path);
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

Bpe::Bpe(const std::string &folder) {
  readVocabulary(concat(folder, "/vocab.json"));
  readMerges(concat(folder, "/merges.txt"));
  for (int byte = 0; byte < 256; ++byte)
    bytes_[static_cast<size_t>(byte)] = numberOf(characterOf(byte));
}

void Bpe::readVocabulary(const std::string &path) {
  vocabulary_ = path;
  std::string text = readText(path);
  VocabularyReader reader(path, numbers_);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  for (const auto &[token, number] : numbers_) {
    texts_.resize(std::max(texts_.size(), static_cast<size_t>(number) + 1));
    texts_[static_cast<size_t>(number)] = token;
  }
}

void Bpe::readMerges(const std::string &path) {
  std::string text = readText(path);
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version")))
      continue;
    size_t space = line.find(' ');
    std::string left(line.substr(0, space)), right(space < line.size() ? line.substr(space + 1) : "");
    int32_t first = numberOf(left), second = numberOf(right), merged = numberOf(left + right);
    if (first < 0 || second < 0 || merged < 0)
      failInvalid(concat(path, ": line ", number, ": ", quote(line), " are not two tokens that make a third one of ",
                         vocabulary_));
    merges_.try_emplace({first, second}, Merge{static_cast<int32_t>(merges_.size()), merged});
  }
}

int32_t Bpe::numberOf(const std::string &token) const {
  auto found = numbers_.find(token);
  return found == numbers_.end() ? -1 : found->second;
}

Vocabulary Bpe::vocabulary() const {
  int64_t size = 0;
  for (const auto &[token, number] : numbers_)
    size = std::max(size, static_cast<int64_t>(number) + 1);
  return {size, vocabulary_};
}

//===- encoding ---------------------------------------------------------------------------------------------------===//

namespace {
/// A token of a word, in a list that is linked by indices.
struct Piece {
  int32_t token;
  size_t before, after;
};

/// A candidate merge of the piece `left` and the next one; valid while they still have the tokens `first` and `second`.
/// Candidates are ordered by merge rank, then from left to right.
struct Candidate {
  int32_t rank;
  size_t left;
  int32_t first, second, merged;

  bool operator>(const Candidate &other) const { return std::tie(rank, left) > std::tie(other.rank, other.left); }
};
} // namespace

std::vector<int32_t> Bpe::encodeWord(std::string_view word, const std::string &name) const {
  std::vector<Piece> pieces;
  for (char byte : word) {
    int32_t token = bytes_[static_cast<unsigned char>(byte)];
    if (token < 0)
      failInvalid(concat(name, ": ", quote(word), " needs the byte ",
                         static_cast<int>(static_cast<unsigned char>(byte)), ", for which ", vocabulary_,
                         " has no token"));
    pieces.push_back({token, pieces.size() - 1, pieces.size() + 1});
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  auto offer = [&](size_t left) {
    if (left >= pieces.size() || pieces[left].after >= pieces.size())
      return;
    int32_t first = pieces[left].token, second = pieces[pieces[left].after].token;
    if (auto found = merges_.find({first, second}); found != merges_.end())
      candidates.push({found->second.rank, left, first, second, found->second.token});
  };
  for (size_t left = 0; left < pieces.size(); ++left)
    offer(left);
  while (!candidates.empty()) {
    Candidate best = candidates.top();
    candidates.pop();
    Piece &left = pieces[best.left];
    if (left.token != best.first || left.after >= pieces.size() || pieces[left.after].token != best.second)
      continue; // already merged
    Piece &right = pieces[left.after];
    left.token = best.merged;
    right.token = -1;
    left.after = right.after;
    if (left.after < pieces.size())
      pieces[left.after].before = best.left;
    offer(left.before);
    offer(best.left);
  }
  std::vector<int32_t> tokens;
  for (const Piece &piece : pieces)
    if (piece.token >= 0)
      tokens.push_back(piece.token);
  return tokens;
}

std::vector<int32_t> Bpe::encode(std::string_view text, const std::string &name) const {
  std::vector<Character> characters = charactersOf(text, name);
  std::unordered_map<std::string, std::vector<int32_t>> known;
  std::vector<int32_t> tokens;
  for (size_t begin = 0; begin < characters.size();) {
    size_t end = endOfWord(characters, begin);
    size_t from = characters[begin].begin, to = end < characters.size() ? characters[end].begin : text.size();
    std::string word(text.substr(from, to - from));
    auto [its, isNew] = known.try_emplace(word);
    if (isNew)
      its->second = encodeWord(word, name);
    tokens.insert(tokens.end(), its->second.begin(), its->second.end());
    begin = end;
  }
  return tokens;
}

//===- decoding ---------------------------------------------------------------------------------------------------===//

/// The inverse of `characterOf`.
static std::map<std::string, char, std::less<>> bytesOfCharacters() {
  std::map<std::string, char, std::less<>> bytes;
  for (int byte = 0; byte < 256; ++byte)
    bytes[characterOf(byte)] = static_cast<char>(byte);
  return bytes;
}

std::string Bpe::textOf(int32_t token) const {
  static const std::map<std::string, char, std::less<>> bytes = bytesOfCharacters();
  std::string text;
  if (token < 0 || token >= size())
    return text;
  std::string_view rest = texts_[static_cast<size_t>(token)];
  while (!rest.empty()) {
    size_t length = std::max<size_t>(1, lengthOf(static_cast<unsigned char>(rest.front())));
    std::string_view character = rest.substr(0, length);
    rest.remove_prefix(character.size());
    auto byte = bytes.find(character); // a special token may contain other characters
    text += byte == bytes.end() ? std::string(character) : std::string(1, byte->second);
  }
  return text;
}

namespace {
class EncodedTokens final : public TokenStream {
public:
  EncodedTokens(const std::string &file, std::vector<int32_t> tokens, Vocabulary vocabulary)
      : TokenStream(file, static_cast<int64_t>(tokens.size()), std::move(vocabulary)), tokens_(std::move(tokens)) {}
  void read(int64_t from, std::span<int32_t> to) const override {
    std::copy_n(tokens_.begin() + from, to.size(), to.begin());
  }

private:
  std::vector<int32_t> tokens_;
};
} // namespace

Table bpeTokens(const std::string &path, const std::string &folder) {
  return {path, tokenColumns([path, folder] {
            Bpe bpe(folder);
            return std::make_shared<EncodedTokens>(path, bpe.encode(readText(path), path), bpe.vocabulary());
          })};
}

} // namespace sluice::runtime

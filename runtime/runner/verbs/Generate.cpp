// `generate`: a language model continues a text, one token per call of `decode`.
//
// `decode` takes a `token`, and its `position` if the model has a bounded context, and returns `logits`, the scores of
// the next token. Its caches carry over to the next call. The optional `prefill` takes a `prompt` in chunks and `last`,
// the index of a shorter chunk's last token; it returns the logits for that token.
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/data/text/Bpe.h"
#include "runtime/files/InputFile.h"
#include "runtime/runner/verbs/Verbs.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <utility>

namespace sluice::runtime {

using Tokens = std::vector<int32_t>;

//===- the model --------------------------------------------------------------------------------------------------===//

namespace {

/// Computes the scores of the next token.
class Decoder {
public:
  explicit Decoder(Instance &instance)
      : instance_(instance), decode_(decodeOf(instance.plan())), prefill_(instance.plan().findEntry("prefill")),
        position_(decode_.findInput("position")) {
    checkTokens(decode_, "token");
    if (prefill_)
      checkTokens(*prefill_, "prompt");
    scores_.resize(static_cast<size_t>(elementsOf(logitsOf(decode_).shape)));
  }

  int64_t words() const { return static_cast<int64_t>(scores_.size()); }
  /// Context length in tokens; 0: unbounded.
  int64_t context() const { return position_ ? position_->below : 0; }

  /// Starts with a prompt.
  void begin(const Tokens &prompt) {
    text_ = prompt;
    bool isLong = context() > 0 && std::cmp_greater(prompt.size(), context());
    isLong ? beginAnew() : read(text_);
  }

  /// Appends a token.
  void add(int32_t token) {
    text_.push_back(token);
    if (context() > 0 && std::cmp_equal(window_.size(), context()))
      return beginAnew();
    read(std::span(text_).last(1));
  }

  const std::vector<double> &scores() const { return scores_; }

private:
  static const Entry &decodeOf(const Plan &plan) {
    const Entry *entry = plan.findEntry("decode");
    if (!entry)
      failUsage(concat("generate: cannot generate text: the model has no entry point 'decode'; it has: ",
                       listed(plan.entryNames())));
    return *entry;
  }

  static const Value &logitsOf(const Entry &entry) {
    const Value *logits = entry.findOutput("logits");
    if (!logits || !isFloat(logits->dtype) || logits->rowsDim >= 0)
      failUnsupported(concat("generate: ", quote(entry.name), " has no output 'logits'"));
    return *logits;
  }

  /// Checks that generation can fill all inputs and that the entry returns scores.
  void checkTokens(const Entry &entry, const char *tokens) const {
    for (const Value &input : entry.inputs) {
      bool isTokens = input.name == tokens && (&entry != &decode_ || elementsOf(input.shape) == 1);
      bool isPlace = (input.name == "position" && input.below > 0) || (input.name == "last" && &entry != &decode_);
      if (input.dtype != DType::i32 || input.rowsDim >= 0 || !(isTokens || (isPlace && input.shape.empty())))
        failUnsupported(concat("generate: ", quote(entry.name), " takes ", quote(input.name), " of type ",
                               typeText(input.dtype, input.shape), ", and not ", quote(tokens),
                               " of i32 or a position"));
    }
    if (!entry.findInput(tokens))
      failUnsupported(concat("generate: ", quote(entry.name), " takes no ", quote(tokens)));
    if (elementsOf(logitsOf(entry).shape) != elementsOf(logitsOf(decode_).shape))
      failUnsupported("generate: 'prefill' and 'decode' have different vocabulary sizes");
  }

  /// Restarts the context with the last half of its tokens.
  void beginAnew() {
    window_.clear();
    auto kept = static_cast<size_t>(std::max<int64_t>(1, context() / 2));
    read(std::span(text_).last(kept));
  }

  /// Appends tokens to the context and computes the scores after the last.
  void read(std::span<const int32_t> tokens) {
    window_.insert(window_.end(), tokens.begin(), tokens.end());
    for (size_t done = window_.size() - tokens.size(); done < window_.size();)
      done = prefill_ && window_.size() - done > 1 ? readChunk(done) : readOne(done);
  }

  size_t readOne(size_t at) {
    set(decode_, "token", {window_[at]});
    set(decode_, "position", {static_cast<int32_t>(at)});
    run(decode_);
    return at + 1;
  }

  /// Reads a chunk of tokens from position `at` on, and returns the position after it. A chunk that would exceed the
  /// context begins earlier, with tokens that were already read.
  size_t readChunk(size_t at) {
    auto size = static_cast<size_t>(elementsOf(prefill_->findInput("prompt")->shape));
    size_t end = std::min(window_.size(), at + size), begin = at;
    if (const Value *position = prefill_->findInput("position"))
      begin = std::min(at, static_cast<size_t>(position->below - 1));
    Tokens chunk(window_.begin() + static_cast<std::ptrdiff_t>(begin),
                 window_.begin() + static_cast<std::ptrdiff_t>(end));
    chunk.resize(size);
    set(*prefill_, "prompt", chunk);
    set(*prefill_, "position", {static_cast<int32_t>(begin)});
    set(*prefill_, "last", {static_cast<int32_t>(end - begin - 1)});
    run(*prefill_);
    return end;
  }

  void set(const Entry &entry, const char *name, const Tokens &values) {
    if (const Value *input = entry.findInput(name))
      instance_.setInput(*input, std::as_bytes(std::span(values)), 1);
  }

  void run(const Entry &entry) {
    instance_.run(entry, 1);
    const Value &logits = logitsOf(entry);
    Bytes data(static_cast<size_t>(instance_.bytesFor(logits, 1)));
    instance_.getOutput(logits, data, 1);
    for (size_t word = 0; word < scores_.size(); ++word)
      scores_[word] = elementAsDouble(logits.dtype, data.data(), static_cast<int64_t>(word));
  }

  Instance &instance_;
  const Entry &decode_, *prefill_;
  const Value *position_;
  Tokens text_, window_; ///< all tokens, and the tokens in the context by position
  std::vector<double> scores_;
};

//===- text -------------------------------------------------------------------------------------------------------===//

/// The form of the prompt and the output: bytes, entries of a vocabulary, or token numbers.
class Language {
public:
  Language(const Options &options, int64_t words)
      : isNumbers_(options.generate.promptTokens.has_value()), words_(words) {
    const std::string &folder = options.dataOptions.tokenizer;
    if (!folder.empty() && isNumbers_)
      failUsage("cannot combine --prompt-tokens with --tokenizer: the prompt has token numbers already");
    if (!folder.empty())
      bpe_.emplace(folder);
    if (bpe_ && bpe_->size() > words)
      failInvalid(
          concat(folder, ": has tokens up to number ", bpe_->size() - 1, ", and the vocabulary size is ", words));
    if (!bpe_ && !isNumbers_ && words < 256)
      failInvalid(concat("cannot use bytes as tokens: the vocabulary size is ", words,
                         "; give --tokenizer or --prompt-tokens"));
  }

  /// The number of tokens that can be printed; larger tokens are never sampled.
  int64_t tokens() const { return bpe_ ? bpe_->size() : isNumbers_ ? words_ : 256; }

  Tokens promptOf(const GenerateOptions &options) const {
    if (isNumbers_)
      return numbersIn(*options.promptTokens);
    if (!options.prompt)
      failUsage("generate needs --prompt TEXT, or --prompt-tokens");
    std::string text = *options.prompt, name = "--prompt";
    if (text == "-") {
      name = "standard input";
      check(name, files::readFile("/dev/stdin", files::Source::regularOrPipe, mostBytes, text));
    }
    if (text.empty())
      failInvalid(concat(name, ": the prompt is empty"));
    if (bpe_)
      return bpe_->encode(text, name);
    Tokens tokens;
    for (char byte : text)
      tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }

  std::string textOf(int32_t token) const {
    return isNumbers_ ? concat(token, " ") : bpe_ ? bpe_->textOf(token) : std::string(1, static_cast<char>(token));
  }

private:
  static constexpr uint64_t mostBytes = UINT64_C(1) << 30;

  Tokens numbersIn(const std::string &list) const {
    Tokens tokens;
    for (const char *at = list.c_str(); *at != '\0';) {
      char *end = nullptr;
      long long token = std::strtoll(at, &end, 10);
      if (end == at || (*end != ',' && *end != '\0') || (*end == ',' && end[1] == '\0'))
        failUsage(concat("--prompt-tokens: ", quote(list), " is not a list such as 5,17,3"));
      if (token < 0 || token >= words_)
        failInvalid(concat("--prompt-tokens: ", token, " is outside the vocabulary, 0 to ", words_ - 1));
      tokens.push_back(static_cast<int32_t>(token));
      at = end + (*end == ',');
    }
    if (tokens.empty())
      failInvalid("--prompt-tokens: the prompt is empty");
    return tokens;
  }

  std::optional<Bpe> bpe_;
  bool isNumbers_;
  int64_t words_;
};

} // namespace

//===- the verb ---------------------------------------------------------------------------------------------------===//

static void checkLength(const GenerateOptions &options, size_t prompt, int64_t context) {
  if (context > 0 && !options.slides && static_cast<int64_t>(prompt) + options.tokens > context)
    failInvalid(concat("the prompt's ", prompt, prompt == 1 ? " token" : " tokens", " and ", options.tokens,
                       " more are longer than the model's context of ", context, ": ask for fewer, or for --slide"));
}

namespace {

/// Collects and prints the sampled tokens.
class Generation {
public:
  Generation(const Options &options, const Language &language, Decoder &decoder, bool isFirst)
      : options_(options), language_(language), decoder_(decoder), streams_(isFirst && !options.json),
        sampler_(samplingOf(options)) {}

  void run(const Tokens &prompt) {
    promptSeconds_ = secondsOf([&] { decoder_.begin(prompt); });
    seconds_ = secondsOf([&] {
      while (std::cmp_less(tokens_.size(), options_.generate.tokens))
        draw();
    });
    if (streams_)
      printText("\n");
  }

  Json json(size_t prompt) const {
    return {{"prompt_tokens", prompt}, {"tokens", tokens_},
            {"text", text_},           {"prompt_seconds", promptSeconds_},
            {"seconds", seconds_},     {"tokens_per_s", perSecond(tokens_.size(), seconds_)}};
  }

  std::string summary(size_t prompt) const {
    return concat("prompt of ", prompt, " tokens: ", rateText(perSecond(prompt, promptSeconds_)), " tokens/s; ",
                  tokens_.size(), " more: ", rateText(perSecond(tokens_.size(), seconds_)), " tokens/s");
  }

private:
  static SamplingOptions samplingOf(const Options &options) {
    SamplingOptions sampling = options.generate.sampling;
    sampling.seed = options.seed.value_or(0);
    return sampling;
  }

  static double secondsOf(const std::function<void()> &work) {
    auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  static double perSecond(size_t count, double seconds) { return static_cast<double>(count) / std::max(seconds, 1e-9); }

  void draw() {
    if (!tokens_.empty())
      decoder_.add(tokens_.back());
    std::span<const double> scores = decoder_.scores();
    tokens_.push_back(sampler_.next(scores.first(static_cast<size_t>(language_.tokens()))));
    std::string piece = language_.textOf(tokens_.back());
    text_ += piece;
    if (streams_)
      printText(piece);
  }

  const Options &options_;
  const Language &language_;
  Decoder &decoder_;
  bool streams_;
  Sampler sampler_;
  Tokens tokens_;
  std::string text_;
  double promptSeconds_ = 0, seconds_ = 0;
};

} // namespace

int runGenerate(const Options &options, Processes &processes) {
  Instance instance = startInstance(options, processes.group());
  Decoder decoder(instance);
  requireWeights("generate", options, instance.plan());
  std::vector<Setting> settings = checkSettings(instance.plan(), options.settings);
  Language language(options, decoder.words());
  Tokens prompt = language.promptOf(options.generate);
  checkLength(options.generate, prompt.size(), decoder.context());
  beginStates(instance, options, /*seed=*/0, settings);
  processes.agree({{"the length of the prompt", std::to_string(prompt.size())},
                   {"the number of tokens", std::to_string(options.generate.tokens)}},
                  instance);
  startTrace(instance, options);
  Generation generation(options, language, decoder, processes.isFirst());
  generation.run(prompt);
  if (processes.isFirst() && options.json) // sampled bytes need not be UTF-8
    printLine(generation.json(prompt.size()).dump(-1, ' ', false, Json::error_handler_t::replace));
  if (processes.isFirst() && !options.quiet && !options.json)
    talk(generation.summary(prompt.size()));
  finishRun(instance, options, instance.times().take());
  return 0;
}

} // namespace sluice::runtime

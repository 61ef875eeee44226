#include "runtime/instance/Sampling.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/io/Shuffle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

namespace sluice::runtime {

static void requireScores(std::span<const double> scores) {
  bool isAny = false;
  for (size_t word = 0; word < scores.size(); ++word) {
    if (std::isnan(scores[word]) || scores[word] == HUGE_VAL)
      failInvalid(concat("the score of word ", word, " is ", std::isnan(scores[word]) ? "not a number" : "infinite"));
    isAny |= scores[word] != -HUGE_VAL;
  }
  if (!isAny)
    failInvalid("no word has a score that is finite");
}

/// The smallest of the `count` best scores; minus infinity if `count` is 0 or includes all scores.
static double leastOfBest(std::span<const double> scores, int64_t count) {
  if (count <= 0 || static_cast<size_t>(count) >= scores.size())
    return -HUGE_VAL;
  std::vector<double> sorted(scores.begin(), scores.end());
  std::nth_element(sorted.begin(), sorted.begin() + (count - 1), sorted.end(), std::greater<>());
  return sorted[static_cast<size_t>(count) - 1];
}

/// The probabilities of scores of at least `least`, after division by the temperature.
static std::vector<LikelyWord> probabilitiesOf(std::span<const double> scores, double least, double temperature) {
  double best = *std::max_element(scores.begin(), scores.end()), total = 0;
  std::vector<LikelyWord> words;
  for (size_t word = 0; word < scores.size(); ++word)
    if (scores[word] >= least && scores[word] != -HUGE_VAL) {
      double weight = std::exp((scores[word] - best) / temperature);
      words.push_back({static_cast<int32_t>(word), weight});
      total += weight;
    }
  for (LikelyWord &word : words)
    word.probability /= total;
  return words;
}

/// Keeps the smallest set of most probable words whose probability reaches `wanted`; ties are broken by order.
static void keepProbable(std::vector<LikelyWord> &words, double wanted) {
  if (wanted >= 1)
    return;
  std::sort(words.begin(), words.end(), [](const LikelyWord &a, const LikelyWord &b) {
    return std::tie(b.probability, a.word) < std::tie(a.probability, b.word);
  });
  double total = 0;
  size_t kept = 0;
  while (kept < words.size() && (kept == 0 || total < wanted))
    total += words[kept++].probability;
  words.resize(kept);
  std::sort(words.begin(), words.end(), [](const LikelyWord &a, const LikelyWord &b) { return a.word < b.word; });
  for (LikelyWord &word : words)
    word.probability /= total;
}

std::vector<LikelyWord> candidatesOf(std::span<const double> scores, const SamplingOptions &options) {
  requireScores(scores);
  if (options.temperature == 0) {
    auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    return {{static_cast<int32_t>(best), 1}};
  }
  // Top-k may apply before the temperature, which does not change the order.
  std::vector<LikelyWord> words = probabilitiesOf(scores, leastOfBest(scores, options.topK), options.temperature);
  keepProbable(words, options.topP);
  return words;
}

/// Random number `number` of the seed, in [0, 1).
static double randomNumber(uint64_t seed, uint64_t number) {
  auto [high, low] = threefry2x32(wordsOf(seed), wordsOf(number));
  return static_cast<double>((static_cast<uint64_t>(high) << 32 | low) >> 11) * 0x1p-53;
}

int32_t Sampler::next(std::span<const double> scores) {
  std::vector<LikelyWord> words = candidatesOf(scores, options_);
  double left = randomNumber(options_.seed, drawn_++);
  for (const LikelyWord &word : words)
    if ((left -= word.probability) < 0)
      return word.word;
  return words.back().word; // rounding left a remainder
}

} // namespace sluice::runtime

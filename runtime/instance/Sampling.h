// Selects the next word from the scores of all words: the best, or at random. The host computes in double precision, so
// that equal scores select equal words, whatever device computed them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::runtime {

struct SamplingOptions {
  double temperature = 1; ///< divisor of the scores; 0: always the best word
  int64_t topK = 0;       ///< samples from this many best words; 0: from all
  double topP = 1;        ///< and from the smallest set of best words with this total probability
  uint64_t seed = 0;
};

struct LikelyWord {
  int32_t word;
  double probability;
};

/// The candidates for the next word, in index order. As in Hugging Face transformers, the temperature applies first,
/// then top-k, which keeps ties with the k-th score, then top-p on the remaining words. Fails if a score is NaN or plus
/// infinity, or if no score is finite.
std::vector<LikelyWord> candidatesOf(std::span<const double> scores, const SamplingOptions &options);

/// Samples words; the n-th word uses the n-th random number of the seed.
class Sampler {
public:
  explicit Sampler(const SamplingOptions &options) : options_(options) {}

  int32_t next(std::span<const double> scores);

private:
  SamplingOptions options_;
  uint64_t drawn_ = 0;
};

} // namespace sluice::runtime

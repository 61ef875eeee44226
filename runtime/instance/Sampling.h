// Which word comes next, of the scores of all: the best one, or one that is drawn. It is done on the host in double precision, so that
// equal scores give equal words on every device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::runtime {

struct SamplingOptions {
  double temperature = 1; ///< that scores are divided by; 0: the best word is taken
  int64_t topK = 0;       ///< words are drawn of so many of the best alone; 0: of all
  double topP = 1;        ///< and of the fewest of the best ones that have this probability together
  uint64_t seed = 0;
};

struct LikelyWord {
  int32_t word;
  double probability;
};

/// The words that may come next, in their order. As Hugging Face's transformers have it, the temperature comes first, then top-k, which
/// keeps what is as good as the worst that it keeps, and then top-p, of what top-k has left. Fails if a score is no number, or none is
/// finite.
std::vector<LikelyWord> candidatesOf(std::span<const double> scores, const SamplingOptions &options);

/// Draws words: number n of them by number n of the seed's random numbers.
class Sampler {
public:
  explicit Sampler(const SamplingOptions &options) : options_(options) {}

  int32_t next(std::span<const double> scores);

private:
  SamplingOptions options_;
  uint64_t drawn_ = 0;
};

} // namespace sluice::runtime

// Selection of the next word: candidates compared with PyTorch's results, and sampling frequencies.
#include "runtime/instance/Sampling.h"
#include "runtime/base/Status.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::runtime;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

namespace {

const std::vector<double> kScores = {1.5, -0.5, 3.0, 0.25, 3.0, -2.0, 2.0};

std::vector<int32_t> wordsOf(const std::vector<LikelyWord> &candidates) {
  std::vector<int32_t> words;
  for (const LikelyWord &candidate : candidates)
    words.push_back(candidate.word);
  return words;
}

std::vector<double> probabilitiesOf(const std::vector<LikelyWord> &candidates) {
  std::vector<double> probabilities;
  for (const LikelyWord &candidate : candidates)
    probabilities.push_back(candidate.probability);
  return probabilities;
}

std::string messageOf(const std::vector<double> &scores) {
  return guarded([&] { candidatesOf(scores, {}); }).message;
}

} // namespace

TEST(Sampling, TakesTheBestWordAtTemperatureZero) {
  EXPECT_THAT(wordsOf(candidatesOf(kScores, {.temperature = 0})), ElementsAre(2));
  EXPECT_EQ(Sampler({.temperature = 0, .seed = 9}).next(kScores), 2);
}

// torch.softmax(scores / 0.7, 0)
TEST(Sampling, DividesScoresByTheTemperature) {
  std::vector<double> expected = {0.049207542526085724, 0.0028261180549957713, 0.4194331085387517, 0.008250985348611111,
                                  0.4194331085387517,   0.00033155781349601,   0.10051757917930772};
  EXPECT_THAT(probabilitiesOf(candidatesOf(kScores, {.temperature = 0.7})), Pointwise(DoubleNear(1e-12), expected));
}

TEST(Sampling, KeepsTheBestWords) {
  EXPECT_THAT(wordsOf(candidatesOf(kScores, {.topK = 3})), ElementsAre(2, 4, 6));
  EXPECT_THAT(wordsOf(candidatesOf(kScores, {.topK = 1})), ElementsAre(2, 4)); // equal scores
  EXPECT_THAT(wordsOf(candidatesOf(kScores, {.topK = 70})), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

// The cumulative probabilities of the best words are 0.371, 0.743 and 0.880.
TEST(Sampling, KeepsTheFewestWordsOfAProbability) {
  EXPECT_THAT(wordsOf(candidatesOf(kScores, {.topP = 0.3})), ElementsAre(2));
  EXPECT_THAT(wordsOf(candidatesOf(kScores, {.topP = 0.4})), ElementsAre(2, 4));
  EXPECT_THAT(wordsOf(candidatesOf(kScores, {.topP = 0.8})), ElementsAre(2, 4, 6));
  EXPECT_THAT(wordsOf(candidatesOf(kScores, {.topP = 0})), ElementsAre(2));
}

// Matches transformers' TemperatureLogitsWarper(2), TopKLogitsWarper(4) and TopPLogitsWarper(0.8) in sequence, written
// in PyTorch. The best three have a probability of 0.73 among all words, and of 0.85 among the best four.
TEST(Sampling, CountsProbabilitiesOfWhatTopKLeaves) {
  std::vector<LikelyWord> candidates = candidatesOf(kScores, {.temperature = 2, .topK = 4, .topP = 0.8});
  EXPECT_THAT(wordsOf(candidates), ElementsAre(2, 4, 6));
  EXPECT_THAT(
      probabilitiesOf(candidates),
      Pointwise(DoubleNear(1e-12), std::vector<double>{0.38365173119055074, 0.38365173119055074, 0.23269653761889864}));
}

TEST(Sampling, DrawsAsOftenAsProbabilitiesSay) {
  constexpr int kDraws = 100000;
  SamplingOptions options{.temperature = 1.3, .seed = 5};
  std::vector<double> expected = probabilitiesOf(candidatesOf(kScores, options)), share(kScores.size());
  Sampler sampler(options);
  for (int draw = 0; draw < kDraws; ++draw)
    share[size_t(sampler.next(kScores))] += 1.0 / kDraws;
  for (size_t word = 0; word < share.size(); ++word) // within four standard deviations
    EXPECT_NEAR(share[word], expected[word], 4 * std::sqrt(expected[word] * (1 - expected[word]) / kDraws)) << word;
}

TEST(Sampling, DrawsTheSameWordsOfASeed) {
  auto drawn = [](uint64_t seed) {
    Sampler sampler({.seed = seed});
    std::vector<int32_t> words;
    for (int draw = 0; draw < 20; ++draw)
      words.push_back(sampler.next(kScores));
    return words;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(Sampling, NeverTakesAWordWithoutAChance) {
  EXPECT_THAT(wordsOf(candidatesOf(std::vector<double>{-INFINITY, 0, -INFINITY}, {})), ElementsAre(1));
}

TEST(Sampling, RefusesScoresThatAreNone) {
  EXPECT_THAT(messageOf({0, NAN}), HasSubstr("the score of word 1 is not a number"));
  EXPECT_THAT(messageOf({INFINITY, 0}), HasSubstr("the score of word 0 is infinite"));
  EXPECT_THAT(messageOf({-INFINITY, -INFINITY}), HasSubstr("no word has a score that is finite"));
}

// Wrong averages are detected: each count and each sum over all rows, in programs of random graphs, is replaced by one
// replica's.
//
//   means of losses, masks and metrics, in all entry points;    here: random graphs
//   synchronized batch norm and its gradient, clipped norms
//   --accumulate, --zero                                        here, separately
//   weighted classes, ignored labels, smoothed labels,          losses_test.cpp: NoticeALocalCountAnywhere
//   each with clipped norms and --deterministic
//   batch norm of a replica's own rows, and its gradient        partition_test.cpp: BatchNormOfReplicas, by hand
#include "tests/e2e/replicas/BatchGraph.h"
#include "tests/e2e/replicas/LocalCounts.h"

#include <gtest/gtest.h>

namespace sluice::test {

class LocalCounts : public testing::TestWithParam<uint64_t> {
protected:
  SharedModel model(std::vector<int64_t> shares) const {
    uint64_t seed = GetParam();
    return {BatchGraph(seed, 12).text, std::move(shares),
            [seed](uint64_t step, int64_t rows) { return BatchGraph::batch(100 * seed + step, rows); }};
  }

  void expectNoticed(const SharedModel &model) const {
    Plants plants = plantLocalCounts(model);
    EXPECT_GT(plants.noticed, 2u);
    EXPECT_LE(plants.unnoticed.size(), GetParam() == 40 || GetParam() == 95 ? 2u : 0u)
        << plants.text() << " of " << model.text;
  }
};

/// Numbers 40 and 95 normalize centered values: their mean is zero, so that a factor of the mean has no effect.
TEST_P(LocalCounts, AreNoticed) { expectNoticed(model({1, 7, 2})); }

TEST_P(LocalCounts, AreNoticedInMicrobatches) {
  SharedModel cut = model({2, 7});
  cut.microbatches = 3;
  expectNoticed(cut);
}

TEST_P(LocalCounts, AreNoticedOfShards) {
  SharedModel shared = model({3, 8});
  shared.sharesOptimizer = true;
  expectNoticed(shared);
}

INSTANTIATE_TEST_SUITE_P(Replicas, LocalCounts, testing::Range<uint64_t>(0, 100, 5));

} // namespace sluice::test

#include "tools/bench/placement_graphs/GraphFamilies.h"

namespace sluice::bench {

std::span<const GraphFamily> graphFamilies() {
  static constexpr GraphFamily families[] = {
      {"AlexNet", alexNet, false, 62378344},        {"VGG-16", vgg16, false, 138357544},
      {"ResNet-50", resNet50, false, 25557032},     {"Inception-v3", inceptionV3, false, 23834568},
      {"BERT-base", bertBase, false, 109482240},    {"GNMT", gnmt, false, 0},
      {"unrolled LSTM", unrolledLstm, true, 0},     {"residual", residualBlocks, true, 0},
      {"series-parallel", seriesParallel, true, 0},
  };
  return families;
}

} // namespace sluice::bench

// RoiAlign: bilinear samples of regions of an image.
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <array>

namespace sluice::onnx {

namespace {

/// The samples of all regions along one dimension of the image: two neighbours each, in [regions, samples].
struct RegionSamples {
  std::array<Tensor, 2> place, weight; ///< places are i32; weights are 0 outside of the image
};

/// The attributes of one dimension.
struct RegionDim {
  std::int64_t size, bins, samples; ///< of the image; of the result; of each bin
  double scale;
  bool halfPixel;
};

} // namespace

/// `first` and `last` are the edges of the regions, in [regions, 1].
static RegionSamples samplesOf(const RegionDim &dim, const Tensor &first, const Tensor &last, Graph graph) {
  double offset = dim.halfPixel ? 0.5 : 0;
  Tensor begin = first * dim.scale - offset, extent = last * dim.scale - offset - begin;
  if (!dim.halfPixel)
    extent = maximum(extent, 1.0);
  std::vector<float> fractions; // of the extent
  for (std::int64_t i = 0; i < dim.bins * dim.samples; ++i)
    fractions.push_back(float((double(i) + 0.5) / double(dim.bins * dim.samples)));
  Tensor x = begin + extent * graph.constant(fractions, {1, dim.bins * dim.samples}).to(begin.dtype());
  Tensor inside = ((x >= -1.0) & (x <= double(dim.size))).to(x.dtype());
  Tensor at = clip(x, 0.0, double(dim.size - 1)), below = sluice::floor(at), t = at - below;
  Tensor above = minimum(below + 1.0, double(dim.size - 1));
  return {{below.to(i32), above.to(i32)}, {(1.0 - t) * inside, t * inside}};
}

static RegionDim regionDim(const Node &node, std::size_t dim, const char *bins) {
  Size size = node.shape(0)[dim];
  RegionDim region{.size = size.constant,
                   .bins = node.integer(bins, 1),
                   .samples = node.integer("sampling_ratio", 0),
                   .scale = node.real("spatial_scale", 1.0),
                   .halfPixel =
                       node.opset() >= 16 && node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"};
  if (region.samples == 0)
    Node::fail("sampling_ratio 0, whose number of samples depends on the regions, is not supported");
  static constexpr std::int64_t kMost = 4096;
  if (!size.isKnown() || region.bins < 1 || region.bins > kMost || region.samples < 1 || region.samples > kMost)
    Node::fail("a result of " + std::to_string(region.bins) + " with " + std::to_string(region.samples) +
               " samples each is not supported");
  return region;
}

void roiAlign(Node &node) {
  std::string mode = node.text("mode", "avg");
  if (node.rank(0) != 4 || !node.shape(0)[0].isKnown() || node.rank(1) != 2 || node.rank(2) != 1)
    Node::fail("these shapes are not supported: a batch of images has a size");
  if (mode != "avg" && mode != "max")
    Node::fail("mode '" + mode + "' is not supported");
  RegionDim rows = regionDim(node, 2, "output_height"), columns = regionDim(node, 3, "output_width");
  Tensor image = node.tensor(0), regions = node.tensor(1);
  auto edge = [&](std::int64_t number) { return regions.slice(1, number, number + 1); };
  RegionSamples y = samplesOf(rows, edge(1), edge(3), node.graph());
  RegionSamples x = samplesOf(columns, edge(0), edge(2), node.graph());
  Tensor elements = image.transpose(0, 1).flatten(1, 3);
  if (elements.size(1).size > std::int64_t(1) << 30)
    Node::fail("images of " + elements.size(1).str() + " elements are not supported");
  Tensor first = node.tensor(2).to(i32).unsqueeze(1).unsqueeze(2) * double(rows.size * columns.size), sum;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      Tensor place = first + y.place[i].unsqueeze(2) * double(columns.size) + x.place[j].unsqueeze(1);
      Tensor part = elements.index_select(1, place) * (y.weight[i].unsqueeze(2) * x.weight[j].unsqueeze(1));
      sum = !bool(sum) ? part : mode == "avg" ? sum + part : maximum(sum, part); // max is of the weighted neighbours
    }
  Tensor bins = sum.reshape({sum.size(0), sum.size(1), rows.bins, rows.samples, columns.bins, columns.samples});
  bins = mode == "avg" ? mean(bins, {3, 5}) : sluice::max(bins, {3, 5});
  node.set(0, bins.transpose(0, 1));
}

} // namespace sluice::onnx

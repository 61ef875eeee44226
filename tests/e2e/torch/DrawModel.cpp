#include "tests/e2e/torch/DrawModel.h"
#include "sluice/sluice.h"
#include <optional>

using nlohmann::json;

namespace sluice::test {

namespace {

struct Draw {
  const char *function;
  std::vector<int64_t> sizes;
  DType dtype = f32;
  double a = 0, b = 1;
  std::optional<int64_t> row = {}; ///< of the split key; absent: the input
};

// Even and odd numbers of elements, one element, and more elements than one task of a kernel computes.
const Draw kDraws[] = {
    {"bits", {64}, i32},
    {"bits", {3, 5}, i32, 0, 1, 1},
    {"bits", {}, i32},
    {"uniform", {2, 3}},
    {"uniform", {1}},
    {"uniform", {1001}, f32, -1, 1},
    {"uniform", {3, 5, 7}, f32, 0.1, 0.7, 1},
    {"uniform", {317, 315}, f32, -1, 1, 2},
    {"uniform", {9}, f16, -3, 5},
    {"uniform", {7}, f64},
    {"uniform", {}, f64, -1, 1},
    {"uniform", {211, 100}, f64, -1, 1, 0},
    {"normal", {2, 3}},
    {"normal", {211, 101}, f32, 3, 2, 2},
    {"normal", {1}, f64},
    {"normal", {211, 101}, f64, -1, 0.5, 1},
};

Tensor drawn(const Draw &draw, const Tensor &key) {
  std::string function = draw.function;
  Shape shape(std::vector<Dim>(draw.sizes.begin(), draw.sizes.end()));
  return function == "bits"      ? random::bits(key, shape)
         : function == "uniform" ? random::uniform(key, shape, draw.a, draw.b, draw.dtype)
                                 : random::normal(key, shape, draw.a, draw.b, draw.dtype);
}

} // namespace

DrawModel::DrawModel(const std::string &devices) : draws(json::array()) {
  Graph graph("draws");
  graph.set_devices(devices);
  Tensor key = graph.input("key", i32, {2}), keys = random::split(key, 3);
  graph.output("keys", keys);
  graph.output("constant", random::uniform(random::key(graph, (uint64_t(7) << 32) + 9), {5}));
  graph.output("scanned", scan({graph.zeros({3})}, {keys}, 0, [](const auto &carried, const auto &slices) {
                            return ScanStep{{carried[0]}, {carried[0] + random::uniform(slices[0], {3})}};
                          }).stacked[0]);
  for (const Draw &draw : kDraws) {
    std::string name = "y" + std::to_string(draws.size());
    graph.output(name, drawn(draw, draw.row ? keys.select(0, *draw.row) : key));
    draws.push_back({{"name", name},
                     {"function", draw.function},
                     {"shape", draw.sizes},
                     {"dtype", to_string(draw.dtype)},
                     {"a", draw.a},
                     {"b", draw.b},
                     {"row", draw.row ? json(*draw.row) : json()}});
  }
  text = graph.str();
}

} // namespace sluice::test

#include "tests/e2e/devices/ReaderGraph.h"

#include "tests/e2e/Portable.h"
#include <functional>
#include <map>
#include <optional>
#include <sluice/sluice.h>

namespace sluice::test {

namespace {

constexpr int64_t kTerms = 5, kHeight = 3, kWidth = 3, kTokens = 2;

/// What the cases of a graph share.
struct Cases {
  Graph &graph;
  nn::Module &net;
  DType dtype;
  RowKind kind;
  Tensor features, images, start; ///< [rows, kTerms], [rows, kTerms, kHeight, kWidth], a scalar
  int parameters = 0;

  Tensor parameter(const Shape &shape) {
    return net.parameter("w" + std::to_string(parameters++), shape, init::uniform(-0.9, 0.9));
  }
};

using Root = std::function<Tensor(Cases &, int64_t columns)>;
/// Gives a tensor that broadcasts to the shape of `h`; none where there is no such reader of `h`.
using Reader = std::function<std::optional<Tensor>(Cases &, Tensor h, int64_t columns)>;

/// [rows, columns], different in each element.
Tensor spread(Cases &c, int64_t columns) {
  return c.features.slice(1, 0, 1) * c.parameter({columns}) + c.features.slice(1, 1, 2);
}

/// [rows, columns, kHeight, kWidth].
Tensor spreadImages(Cases &c, int64_t columns) {
  return c.images.slice(1, 0, 1) * c.parameter({columns, 1, 1}) + c.images.slice(1, 1, 2);
}

const std::map<std::string, Root> &roots() {
  static const std::map<std::string, Root> all = {
      {"linear", [](Cases &c, int64_t n) { return linear(c.features, c.parameter({n, kTerms})); }},
      {"linear_bias",
       [](Cases &c, int64_t n) { return linear(c.features, c.parameter({n, kTerms}), c.parameter({n})); }},
      {"matmul", [](Cases &c, int64_t n) { return matmul(c.features, c.parameter({kTerms, n})); }},
      {"matmul_left",
       [](Cases &c, int64_t n) { return einsum("ck,nk->nc", c.parameter({n, kTerms}), c.features); }},
      {"conv1x1", [](Cases &c, int64_t n) { return conv2d(c.images, c.parameter({n, kTerms, 1, 1})); }},
      {"conv3x3",
       [](Cases &c, int64_t n) { return conv2d(c.images, c.parameter({n, kTerms, 3, 3}), {}, {.padding = 1}); }},
      {"depthwise",
       [](Cases &c, int64_t n) {
         return conv2d(spreadImages(c, n), c.parameter({n, 1, 3, 3}), {}, {.padding = 1, .groups = n});
       }},
      {"conv_transpose",
       [](Cases &c, int64_t n) {
         return conv_transpose2d(c.images, c.parameter({kTerms, n, 3, 3}), {}, {.padding = 1});
       }},
      {"max_pool", [](Cases &c, int64_t n) { return max_pool2d(spreadImages(c, n), 3, {.stride = 1, .padding = 1}); }},
      {"avg_pool", [](Cases &c, int64_t n) { return avg_pool2d(spreadImages(c, n), 3, {.stride = 1, .padding = 1}); }},
      {"layer_norm", [](Cases &c, int64_t n) { return layer_norm(spread(c, n), {n}, c.parameter({n})); }},
      {"softmax", [](Cases &c, int64_t n) { return softmax(spread(c, n), 1); }},
      {"attention",
       [](Cases &c, int64_t n) {
         Tensor q = spread(c, n).unsqueeze(2), k = spread(c, n).unsqueeze(2);
         return scaled_dot_product_attention(q, k, k).squeeze(2);
       }},
      {"sum", [](Cases &c, int64_t n) { return spreadImages(c, n).sum({2, 3}); }},
      {"row_sum", [](Cases &c, int64_t n) { return spread(c, n) + spread(c, n).sum({0}, true); }},
      {"cumsum", [](Cases &c, int64_t n) { return cumsum(spread(c, n), 1); }},
      {"embedding",
       [](Cases &c, int64_t n) {
         Tensor index = (c.features.select(1, 2) * 2 + 2).to(i32);
         return embedding(index, c.parameter({kTerms, n}));
       }},
  };
  return all;
}

std::vector<int32_t> reversed(int64_t columns) {
  std::vector<int32_t> order;
  for (int64_t i = columns; i-- > 0;)
    order.push_back(int32_t(i));
  return order;
}

const std::map<std::string, Reader> &readers() {
  using Result = std::optional<Tensor>;
  static const std::map<std::string, Reader> all = {
      {"slice", [](Cases &, Tensor h, int64_t) -> Result { return h.slice(1, 0, 1); }},
      {"select", [](Cases &, Tensor h, int64_t n) -> Result { return h.select(1, n / 2).unsqueeze(1); }},
      {"flip", [](Cases &, Tensor h, int64_t) -> Result { return flip(h, {1}); }},
      {"roll", [](Cases &, Tensor h, int64_t) -> Result { return roll(h, 1, 1); }},
      {"narrow", [](Cases &c, Tensor h, int64_t) -> Result {
         if (c.kind == RowKind::Merged)
           return {};
         return narrow(h, 1, c.start, 1);
       }},
      {"index_select",
       [](Cases &c, Tensor h, int64_t n) -> Result {
         return index_select(h, 1, c.graph.constant(reversed(n), {n}));
       }},
      {"gather",
       [](Cases &c, Tensor h, int64_t n) -> Result {
         if (h.dim() != 2 || c.kind == RowKind::Merged)
           return {};
         Tensor index = (c.features.slice(1, 0, 1) * 4 + c.graph.arange(0, double(n), 1, c.dtype)).to(i32);
         return gather(h, 1, clamp(index, 0, double(n - 1)));
       }},
      {"take_along_dim",
       [](Cases &c, Tensor h, int64_t n) -> Result {
         if (h.dim() != 2 || c.kind == RowKind::Merged)
           return {};
         return take_along_dim(h, clamp((c.features.slice(1, 0, 1) * double(n)).to(i32), 0, double(n - 1)), 1);
       }},
      {"transpose",
       [](Cases &c, Tensor h, int64_t n) -> Result {
         if (h.dim() == 4)
           return h.transpose(2, 3);
         if (c.kind == RowKind::Static && n == kReaderRows)
           return h.t();
         if (n % 2 != 0 || n < 4 || c.kind == RowKind::Merged)
           return {};
         Tensor halves = h.reshape({h.size(0), 2, n / 2});
         return halves.transpose(1, 2).reshape({h.size(0), n});
       }},
      {"pad",
       [](Cases &, Tensor h, int64_t n) -> Result {
         if (n < 2)
           return {};
         std::vector<int64_t> around(size_t(2 * (h.dim() - 1)), 0);
         around[around.size() - 2] = 1;
         return pad(h.slice(1, 0, n - 1), around, 0.25);
       }},
      {"rotate",
       [](Cases &, Tensor h, int64_t n) -> Result {
         if (n % 2 != 0)
           return {};
         return cat({-h.slice(1, n / 2), h.slice(1, 0, n / 2)}, 1);
       }},
      {"cat", [](Cases &, Tensor h, int64_t n) -> Result {
         if (n < 2)
           return {};
         return cat({h.slice(1, 1), h.slice(1, 0, 1)}, 1);
       }},
      {"window",
       [](Cases &c, Tensor h, int64_t n) -> Result {
         if (h.dim() == 4)
           return avg_pool2d(h, 3, {.stride = 1, .padding = 1});
         if (c.kind == RowKind::Merged)
           return {};
         Tensor row = h.reshape({h.size(0), 1, 1, n});
         return max_pool2d(row, {1, 3}, {.stride = 1, .padding = {0, 1}}).reshape({h.size(0), n});
       }},
      {"reshape",
       [](Cases &c, Tensor h, int64_t n) -> Result {
         if (h.dim() == 4)
           return h.reshape({h.size(0), kHeight, kWidth, n}).permute({0, 3, 1, 2});
         if (c.kind == RowKind::Merged)
           return {};
         return h.reshape({h.size(0), 1, n}).sum({1});
       }},
      {"sum", [](Cases &, Tensor h, int64_t) -> Result { return h.sum({1}, true); }},
      {"max", [](Cases &, Tensor h, int64_t) -> Result { return h.max({1}, true); }},
      {"row_mean", [](Cases &, Tensor h, int64_t) -> Result { return h.mean({0}, true); }},
      {"softmax", [](Cases &, Tensor h, int64_t) -> Result { return softmax(h, 1); }},
      {"cumsum", [](Cases &, Tensor h, int64_t) -> Result { return cumsum(h, 1); }},
      {"sort", [](Cases &c, Tensor h, int64_t n) -> Result {
         if (c.dtype != f32 && c.dtype != f64)
           return {};
         return topk(h, std::min<int64_t>(n, 3), 1).values.slice(1, 0, 1);
       }},
      {"scatter",
       [](Cases &c, Tensor h, int64_t) -> Result {
         if (c.kind == RowKind::Merged)
           return {};
         return slice_scatter(h, h.slice(1, 0, 1) * 2.0, 1, c.start);
       }},
      {"attention",
       [](Cases &c, Tensor h, int64_t) -> Result {
         if (h.dim() != 2 || c.kind == RowKind::Merged)
           return {};
         Tensor q = h.unsqueeze(2);
         return scaled_dot_product_attention(q, q, q).squeeze(2);
       }},
      {"rope",
       [](Cases &c, Tensor h, int64_t n) -> Result {
         if (h.dim() != 2 || n % 2 != 0 || c.kind == RowKind::Merged)
           return {};
         return rope(h.reshape({h.size(0), 1, 1, n})).reshape({h.size(0), n});
       }},
  };
  return all;
}

Tensor combined(const Tensor &h, const Tensor &value, const Tensor &read, int form) {
  switch (form) {
  case 0:
    return h + read;
  case 1:
    return relu(h) - read * 0.5;
  case 2:
    return value * read + h;
  default:
    return (h - read) * 0.5 + abs(value);
  }
}

/// Images and attention need the batch by itself.
bool takesMergedRows(const std::string &root) {
  return root.starts_with("linear") || root == "matmul" || root == "layer_norm" || root == "softmax";
}

template <typename Map> std::vector<std::string> namesOf(const Map &map) {
  std::vector<std::string> names;
  for (const auto &[name, value] : map)
    names.push_back(name);
  return names;
}

} // namespace

std::vector<std::string> readerRoots() { return namesOf(roots()); }
std::vector<std::string> secondReaders() { return namesOf(readers()); }

bool isProductRoot(const std::string &root) {
  return root.starts_with("linear") || root.starts_with("matmul") || root.starts_with("conv") || root == "depthwise";
}

std::string readerGraph(const std::vector<ReaderCase> &cases, DType dtype, RowKind rows, const std::string &devices,
                        bool trains) {
  Graph graph("readers");
  graph.set_dtype(dtype);
  graph.set_devices(devices);
  if (rows != RowKind::Static)
    graph.set_capacity(kReaderRows);
  nn::Module net{graph};
  Dim batch = rows == RowKind::Static ? Dim(kReaderRows) : Dim("rows");
  Cases shared{graph, net, dtype, rows, {}, {}, {}};
  if (rows == RowKind::Merged) {
    shared.features = graph.input("features", dtype, {batch, kTokens, kTerms}).flatten(0, 1);
  } else {
    shared.features = graph.input("features", dtype, {batch, kTerms});
    shared.images = graph.input("images", dtype, {batch, kTerms, kHeight, kWidth});
  }
  shared.start = graph.input("start", i32, {});
  Tensor loss;
  bool hasOutput = false;
  for (size_t number = 0; number < cases.size(); ++number) {
    const ReaderCase &one = cases[number];
    if (rows == RowKind::Merged && !takesMergedRows(one.root))
      continue;
    Tensor h = roots().at(one.root)(shared, one.columns), value = one.form >= 2 ? tanh(h) : h;
    std::optional<Tensor> read = readers().at(one.reader)(shared, value, one.columns);
    if (!read)
      continue;
    Tensor y = combined(h, value, *read, one.form);
    if (rows == RowKind::Merged)
      y = y.reshape({batch, kTokens, one.columns});
    graph.output("y" + std::to_string(number), y);
    hasOutput = true;
    Tensor term = square(y).mean();
    loss = loss ? loss + term : term;
  }
  if (!hasOutput)
    return {};
  if (trains)
    graph.minimize(loss, optim::SGD{.lr = 0.5});
  return graph.str();
}

Values readerInputs(const std::string &graph, RowKind rows) {
  int64_t features = kReaderRows * kTerms * (rows == RowKind::Merged ? kTokens : 1);
  auto values = [&](const std::string &name, int64_t count) {
    std::vector<float> drawn = portableUniform("readers/" + name, size_t(count), -1, 1);
    return std::vector<double>(drawn.begin(), drawn.end());
  };
  Values inputs{{"features", values("features", features)}, {"start", {0}}};
  if (rows != RowKind::Merged)
    inputs["images"] = values("images", features * kHeight * kWidth);
  std::erase_if(inputs, [&](const auto &input) { return graph.find("\"" + input.first + "\"") == std::string::npos; });
  return inputs;
}

} // namespace sluice::test

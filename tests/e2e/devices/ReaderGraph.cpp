#include "tests/e2e/devices/ReaderGraph.h"

#include <functional>
#include <map>
#include <optional>
#include <sluice/sluice.h>

namespace sluice::test {

namespace {

using Root = std::function<Tensor(ReaderContext &, int64_t columns)>;
/// Returns a tensor that broadcasts to the shape of `h`; empty if the reader cannot read `h`.
using Reader = std::function<std::optional<Tensor>(ReaderContext &, Tensor h, int64_t columns)>;

/// [rows, columns] with distinct elements.
Tensor spread(ReaderContext &c, int64_t columns) {
  return c.features.slice(1, 0, 1) * c.parameter({columns}) + c.features.slice(1, 1, 2);
}

/// [rows, columns, kReaderHeight, kReaderWidth].
Tensor spreadImages(ReaderContext &c, int64_t columns) {
  return c.images.slice(1, 0, 1) * c.parameter({columns, 1, 1}) + c.images.slice(1, 1, 2);
}

const std::map<std::string, Root> &roots() {
  static const std::map<std::string, Root> all = {
      {"linear", [](ReaderContext &c, int64_t n) { return linear(c.features, c.parameter({n, c.features.size(1)})); }},
      {"linear_bias",
       [](ReaderContext &c, int64_t n) {
         return linear(c.features, c.parameter({n, c.features.size(1)}), c.parameter({n}));
       }},
      {"matmul", [](ReaderContext &c, int64_t n) { return matmul(c.features, c.parameter({c.features.size(1), n})); }},
      {"matmul_left", [](ReaderContext &c,
                         int64_t n) { return einsum("ck,nk->nc", c.parameter({n, c.features.size(1)}), c.features); }},
      {"conv1x1",
       [](ReaderContext &c, int64_t n) { return conv2d(c.images, c.parameter({n, c.images.size(1), 1, 1})); }},
      {"conv3x3",
       [](ReaderContext &c, int64_t n) {
         return conv2d(c.images, c.parameter({n, c.images.size(1), 3, 3}), {}, {.padding = 1});
       }},
      {"depthwise",
       [](ReaderContext &c, int64_t n) {
         return conv2d(spreadImages(c, n), c.parameter({n, 1, 3, 3}), {}, {.padding = 1, .groups = n});
       }},
      {"conv_transpose",
       [](ReaderContext &c, int64_t n) {
         return conv_transpose2d(c.images, c.parameter({c.images.size(1), n, 3, 3}), {}, {.padding = 1});
       }},
      {"max_pool",
       [](ReaderContext &c, int64_t n) { return max_pool2d(spreadImages(c, n), 3, {.stride = 1, .padding = 1}); }},
      {"avg_pool",
       [](ReaderContext &c, int64_t n) { return avg_pool2d(spreadImages(c, n), 3, {.stride = 1, .padding = 1}); }},
      {"layer_norm", [](ReaderContext &c, int64_t n) { return layer_norm(spread(c, n), {n}, c.parameter({n})); }},
      {"softmax", [](ReaderContext &c, int64_t n) { return softmax(spread(c, n), 1); }},
      {"attention",
       [](ReaderContext &c, int64_t n) {
         Tensor q = spread(c, n).unsqueeze(2), k = spread(c, n).unsqueeze(2);
         return scaled_dot_product_attention(q, k, k).squeeze(2);
       }},
      {"sum", [](ReaderContext &c, int64_t n) { return spreadImages(c, n).sum({2, 3}); }},
      {"row_sum", [](ReaderContext &c, int64_t n) { return spread(c, n) + spread(c, n).sum({0}, true); }},
      {"cumsum", [](ReaderContext &c, int64_t n) { return cumsum(spread(c, n), 1); }},
      {"embedding",
       [](ReaderContext &c, int64_t n) {
         Tensor index = (c.positions.select(1, 2) * 2 + 2).to(i32);
         return embedding(index, c.parameter({5, n}));
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
      {"slice", [](ReaderContext &, Tensor h, int64_t) -> Result { return h.slice(1, 0, 1); }},
      {"select", [](ReaderContext &, Tensor h, int64_t n) -> Result { return h.select(1, n / 2).unsqueeze(1); }},
      {"flip", [](ReaderContext &, Tensor h, int64_t) -> Result { return flip(h, {1}); }},
      {"roll", [](ReaderContext &, Tensor h, int64_t) -> Result { return roll(h, 1, 1); }},
      {"narrow",
       [](ReaderContext &c, Tensor h, int64_t) -> Result {
         if (c.kind == RowKind::Merged)
           return {};
         return narrow(h, 1, c.start, 1);
       }},
      {"index_select",
       [](ReaderContext &c, Tensor h, int64_t n) -> Result {
         return index_select(h, 1, c.graph.constant(reversed(n), {n}));
       }},
      {"gather",
       [](ReaderContext &c, Tensor h, int64_t n) -> Result {
         if (h.dim() != 2 || c.kind == RowKind::Merged)
           return {};
         Tensor index = (c.positions.slice(1, 0, 1) * 4 + c.graph.arange(0, double(n), 1, c.dtype)).to(i32);
         return gather(h, 1, clamp(index, 0, double(n - 1)));
       }},
      {"take_along_dim",
       [](ReaderContext &c, Tensor h, int64_t n) -> Result {
         if (h.dim() != 2 || c.kind == RowKind::Merged)
           return {};
         return take_along_dim(h, clamp((c.positions.slice(1, 0, 1) * double(n)).to(i32), 0, double(n - 1)), 1);
       }},
      {"transpose",
       [](ReaderContext &c, Tensor h, int64_t n) -> Result {
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
       [](ReaderContext &, Tensor h, int64_t n) -> Result {
         if (n < 2)
           return {};
         std::vector<int64_t> around(size_t(2 * (h.dim() - 1)), 0);
         around[around.size() - 2] = 1;
         return pad(h.slice(1, 0, n - 1), around, 0.25);
       }},
      {"rotate",
       [](ReaderContext &, Tensor h, int64_t n) -> Result {
         if (n % 2 != 0)
           return {};
         return cat({-h.slice(1, n / 2), h.slice(1, 0, n / 2)}, 1);
       }},
      {"cat",
       [](ReaderContext &, Tensor h, int64_t n) -> Result {
         if (n < 2)
           return {};
         return cat({h.slice(1, 1), h.slice(1, 0, 1)}, 1);
       }},
      {"window",
       [](ReaderContext &c, Tensor h, int64_t n) -> Result {
         if (h.dim() == 4)
           return avg_pool2d(h, 3, {.stride = 1, .padding = 1});
         if (c.kind == RowKind::Merged)
           return {};
         Tensor row = h.reshape({h.size(0), 1, 1, n});
         return max_pool2d(row, {1, 3}, {.stride = 1, .padding = {0, 1}}).reshape({h.size(0), n});
       }},
      {"reshape",
       [](ReaderContext &c, Tensor h, int64_t n) -> Result {
         if (h.dim() == 4)
           return h.reshape({h.size(0), kReaderHeight, kReaderWidth, n}).permute({0, 3, 1, 2});
         if (c.kind == RowKind::Merged)
           return {};
         return h.reshape({h.size(0), 1, n}).sum({1});
       }},
      {"sum", [](ReaderContext &, Tensor h, int64_t) -> Result { return h.sum({1}, true); }},
      {"max", [](ReaderContext &, Tensor h, int64_t) -> Result { return h.max({1}, true); }},
      {"row_mean", [](ReaderContext &, Tensor h, int64_t) -> Result { return h.mean({0}, true); }},
      {"softmax", [](ReaderContext &, Tensor h, int64_t) -> Result { return softmax(h, 1); }},
      {"cumsum", [](ReaderContext &, Tensor h, int64_t) -> Result { return cumsum(h, 1); }},
      {"sort",
       [](ReaderContext &c, Tensor h, int64_t n) -> Result {
         if (c.dtype != f32 && c.dtype != f64)
           return {};
         return topk(h, std::min<int64_t>(n, 3), 1).values.slice(1, 0, 1);
       }},
      {"scatter",
       [](ReaderContext &c, Tensor h, int64_t) -> Result {
         if (c.kind == RowKind::Merged)
           return {};
         return slice_scatter(h, h.slice(1, 0, 1) * 2.0, 1, c.start);
       }},
      {"attention",
       [](ReaderContext &c, Tensor h, int64_t) -> Result {
         if (h.dim() != 2 || c.kind == RowKind::Merged)
           return {};
         Tensor q = h.unsqueeze(2);
         return scaled_dot_product_attention(q, q, q).squeeze(2);
       }},
      {"rope",
       [](ReaderContext &c, Tensor h, int64_t n) -> Result {
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

template <typename Map> std::vector<std::string> namesOf(const Map &map) {
  std::vector<std::string> names;
  for (const auto &[name, value] : map)
    names.push_back(name);
  return names;
}

} // namespace

Tensor rootValue(ReaderContext &context, const std::string &root, int64_t columns) {
  return roots().at(root)(context, columns);
}

bool readsImages(const std::string &root) {
  return root.starts_with("conv") || root.ends_with("_pool") || root == "depthwise" || root == "sum";
}

/// Images and attention require a separate batch dimension.
static bool takesMergedRows(const std::string &root) {
  return root.starts_with("linear") || root == "matmul" || root == "layer_norm" || root == "softmax";
}

std::optional<Tensor> readTwice(ReaderContext &context, const Tensor &h, const std::string &reader, int64_t columns,
                                int form) {
  Tensor value = form >= 2 ? tanh(h) : h;
  std::optional<Tensor> read = readers().at(reader)(context, value, columns);
  return read ? std::optional(combined(h, value, *read, form)) : std::nullopt;
}

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
  ReaderContext context{graph, net, dtype, rows, {}, {}, {}, {}};
  if (rows == RowKind::Merged) {
    context.features = graph.input("features", dtype, {batch, kReaderTokens, kReaderTerms}).flatten(0, 1);
  } else {
    context.features = graph.input("features", dtype, {batch, kReaderTerms});
    context.images = graph.input("images", dtype, {batch, kReaderTerms, kReaderHeight, kReaderWidth});
  }
  context.positions = context.features;
  context.start = graph.input("start", i32, {});
  Tensor loss;
  bool hasOutput = false;
  for (size_t number = 0; number < cases.size(); ++number) {
    const ReaderCase &one = cases[number];
    if (rows == RowKind::Merged && !takesMergedRows(one.root))
      continue;
    std::optional<Tensor> y =
        readTwice(context, rootValue(context, one.root, one.columns), one.reader, one.columns, one.form);
    if (!y)
      continue;
    graph.output("y" + std::to_string(number),
                 rows == RowKind::Merged ? y->reshape({batch, kReaderTokens, one.columns}) : *y);
    hasOutput = true;
    Tensor term = square(*y).mean();
    loss = loss ? loss + term : term;
  }
  if (!hasOutput)
    return {};
  if (trains)
    graph.minimize(loss, optim::SGD{.lr = 0.5});
  return graph.str();
}

} // namespace sluice::test

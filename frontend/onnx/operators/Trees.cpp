// TreeEnsemble: sums, means or extremes of the leaves of decision trees. All trees of all rows advance together by one level
// in each step of a scan, and stay at the leaf that they reach.
#include "frontend/onnx/file/Wire.h"
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <algorithm>
#include <cmath>

namespace sluice::onnx {

namespace {

/// The attributes nodes_modes and aggregate_function.
enum class Decision { lessOrEqual, less, greaterOrEqual, greater, equal, notEqual, member };
enum class Aggregate { average, sum, min, max };

/// A decision, or a leaf, whose ways lead to itself.
struct TreeNode {
  std::int64_t feature = 0, mode = 0, ifTrue = 0, ifFalse = 0, tracksTrue = 0;
  double split = 0;
};

/// Nodes of all trees: those of the file, further comparisons of sets, and the leaves.
struct Trees {
  std::vector<TreeNode> nodes;
  std::vector<std::int64_t> roots;
  std::int64_t firstLeaf = 0; ///< leaves are the last nodes
};

} // namespace

static constexpr auto kMember = std::int64_t(Decision::member);

static std::vector<std::int64_t> listOf(const Node &node, const char *name, std::size_t count) {
  std::vector<std::int64_t> list = node.integers(name);
  if (list.size() != count)
    throw Malformed(std::string(name) + " has " + std::to_string(list.size()) + " numbers, not " +
                    std::to_string(count));
  return list;
}

static std::int64_t within(std::int64_t index, std::int64_t count, const char *name) {
  if (index < 0 || index >= count)
    throw Malformed(std::string(name) + " contains " + std::to_string(index) + ", and there are " +
                    std::to_string(count));
  return index;
}

/// The members of each set, which NaN separates.
static std::vector<std::vector<double>> setsOf(const Node &node) {
  std::vector<std::vector<double>> sets(1);
  if (!node.hasAttribute("membership_values"))
    return {};
  for (double number : node.tensorAttribute("membership_values").reals())
    if (std::isnan(number))
      sets.emplace_back();
    else
      sets.back().push_back(number);
  return sets;
}

/// A test for a set of n members becomes n comparisons: the first in its place, and the others after the nodes of the file.
static void expandSets(const Node &node, Trees &trees) {
  std::vector<std::vector<double>> sets = setsOf(node);
  std::size_t set = 0, count = trees.nodes.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (trees.nodes[i].mode != kMember)
      continue;
    if (set == sets.size() || sets[set].empty())
      throw Malformed("membership_values has no members for node " + std::to_string(i));
    std::size_t at = i;
    for (std::size_t k = 0; k < sets[set].size(); ++k) {
      trees.nodes[at].mode = std::int64_t(Decision::equal);
      trees.nodes[at].split = sets[set][k];
      if (k + 1 == sets[set].size())
        break;
      TreeNode next = trees.nodes[at];
      trees.nodes[at].ifFalse = std::int64_t(trees.nodes.size());
      at = trees.nodes.size();
      trees.nodes.push_back(next);
    }
    ++set;
  }
}

/// Leaves are numbered from -1 downward until their place is known.
static Trees treesOf(const Node &node, std::int64_t features, std::int64_t leaves) {
  Trees trees;
  trees.roots = node.integers("tree_roots");
  std::vector<std::int64_t> modes = node.tensorAttribute("nodes_modes").integers();
  std::vector<double> splits = node.tensorAttribute("nodes_splits").reals();
  std::size_t count = modes.size();
  auto list = [&](const char *name) { return listOf(node, name, count); };
  std::vector<std::int64_t> feature = list("nodes_featureids"), ifTrue = list("nodes_truenodeids"),
                            ifFalse = list("nodes_falsenodeids"), trueLeaf = list("nodes_trueleafs"),
                            falseLeaf = list("nodes_falseleafs"), tracks(count);
  if (node.hasAttribute("nodes_missing_value_tracks_true"))
    tracks = list("nodes_missing_value_tracks_true");
  auto next = [&](std::int64_t id, std::int64_t isLeaf) {
    return isLeaf != 0 ? -1 - within(id, leaves, "a leaf id") : within(id, std::int64_t(count), "a node id");
  };
  if (trees.roots.empty())
    throw Malformed("tree_roots is empty");
  if (splits.size() != count)
    throw Malformed("nodes_splits has " + std::to_string(splits.size()) + " numbers for " + std::to_string(count) +
                    " nodes");
  for (std::size_t i = 0; i < count; ++i)
    trees.nodes.push_back({within(feature[i], features, "nodes_featureids"),
                           within(modes[i], kMember + 1, "nodes_modes"), next(ifTrue[i], trueLeaf[i]),
                           next(ifFalse[i], falseLeaf[i]), tracks[i], splits[i]});
  for (std::int64_t root : trees.roots)
    within(root, std::int64_t(count), "tree_roots");
  expandSets(node, trees);
  trees.firstLeaf = std::int64_t(trees.nodes.size());
  for (TreeNode &each : trees.nodes)
    for (std::int64_t *way : {&each.ifTrue, &each.ifFalse})
      *way = *way < 0 ? trees.firstLeaf - 1 - *way : *way;
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf)
    trees.nodes.push_back({.ifTrue = trees.firstLeaf + leaf, .ifFalse = trees.firstLeaf + leaf});
  return trees;
}

/// The number of steps after which every tree is at a leaf.
static std::int64_t depthOf(const Trees &trees) {
  constexpr std::size_t mostVisited = std::size_t(1) << 26;
  std::vector<std::int64_t> level = trees.roots;
  std::size_t visited = 0;
  for (std::int64_t depth = 0; depth < 1024 && visited < mostVisited; ++depth) {
    std::ranges::sort(level);
    level.erase(std::ranges::unique(level).begin(), level.end());
    visited += level.size();
    std::vector<std::int64_t> next;
    for (std::int64_t at : level)
      if (at < trees.firstLeaf)
        next.insert(next.end(), {trees.nodes[std::size_t(at)].ifTrue, trees.nodes[std::size_t(at)].ifFalse});
    if (next.empty())
      return depth;
    level = std::move(next);
  }
  Node::fail("trees with cycles, or of more than 1024 levels, are not supported");
}

/// The decision of a mode.
static Tensor decided(Decision decision, const Tensor &x, const Tensor &split) {
  switch (decision) {
  case Decision::less:
    return x < split;
  case Decision::greaterOrEqual:
    return x >= split;
  case Decision::greater:
    return x > split;
  case Decision::equal:
    return x == split;
  case Decision::notEqual:
    return x != split;
  default:
    return x <= split;
  }
}

/// The leaf of each tree in each row of x [N, F]: [N, trees].
static Tensor leavesOf(Node &node, const Trees &trees, const Tensor &x) {
  auto table = [&](auto field, ElementType type) {
    std::vector<double> numbers;
    for (const TreeNode &each : trees.nodes)
      numbers.push_back(double(each.*field));
    return node.constant(Known::ofReals(type, {std::int64_t(numbers.size())}, numbers));
  };
  Tensor feature = table(&TreeNode::feature, ElementType::i64), mode = table(&TreeNode::mode, ElementType::i64),
         ifTrue = table(&TreeNode::ifTrue, ElementType::i64), ifFalse = table(&TreeNode::ifFalse, ElementType::i64),
         tracks = table(&TreeNode::tracksTrue, ElementType::i64), split = table(&TreeNode::split, node.type(0));
  bool hasMode[kMember] = {};
  for (std::int64_t i = 0; i < trees.firstLeaf; ++i)
    hasMode[trees.nodes[std::size_t(i)].mode] = true;
  auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &) {
    const Tensor &at = carried.front();
    auto here = [&](const Tensor &of) { return index_select(of, 0, at); };
    Tensor value = gather(x, 1, here(feature)), limit = here(split), isTrue;
    for (std::int64_t each = 0; each < kMember; ++each)
      if (hasMode[each])
        isTrue = bool(isTrue) ? where(here(mode) == double(each), decided(Decision(each), value, limit), isTrue)
                              : decided(Decision(each), value, limit);
    isTrue = isTrue | (isnan(value) & (here(tracks) != 0.0)); // NaN also differs from every number
    return ScanStep{{where(isTrue, here(ifTrue), here(ifFalse))}, {}};
  };
  Tensor roots = node.constant(Known::vector(trees.roots)) + full_like(x.slice(1, 0, 1), 0).to(i64);
  std::int64_t depth = depthOf(trees);
  return scan({roots}, {node.graph().arange(double(depth))}, 0, step).carried.front() - double(trees.firstLeaf);
}

/// The weights [N, trees] of each target, combined to [N, targets]. A target without leaves is 0.
static Tensor combined(Node &node, const Tensor &weight, const Tensor &target, std::int64_t targets) {
  Tensor isOwn = target.unsqueeze(2) == node.graph().arange(double(targets)), each = weight.unsqueeze(2);
  auto aggregate = Aggregate(node.integer("aggregate_function", std::int64_t(Aggregate::sum)));
  if (aggregate == Aggregate::sum || aggregate == Aggregate::average) {
    Tensor sums = where(isOwn, each, 0.0).sum(1);
    return aggregate == Aggregate::sum ? sums : sums / double(weight.size(1).size);
  }
  if (aggregate != Aggregate::min && aggregate != Aggregate::max)
    Node::fail("aggregate_function " + std::to_string(std::int64_t(aggregate)) + " is not supported");
  Tensor extreme =
      aggregate == Aggregate::min ? where(isOwn, each, INFINITY).min(1) : where(isOwn, each, -INFINITY).max(1);
  return where(isOwn.any(1), extreme, 0.0);
}

void treeEnsemble(Node &node) {
  Tensor x = node.tensor(0);
  if (x.dim() != 2 || x.size(1).symbolic() || !is_float(x.dtype()))
    Node::fail("an input " + x.shape().str() + " is not supported");
  Known weights = node.tensorAttribute("leaf_weights");
  std::int64_t leaves = weights.count(), targets = node.integer("n_targets", 1);
  std::vector<std::int64_t> targetOf = listOf(node, "leaf_targetids", std::size_t(leaves));
  if (targets < 1 || weights.rank() != 1)
    throw Malformed("n_targets is " + std::to_string(targets));
  for (std::int64_t target : targetOf)
    within(target, targets, "leaf_targetids");
  Tensor leaf = leavesOf(node, treesOf(node, x.size(1).size, leaves), x);
  Tensor weight = index_select(node.constant(weights), 0, leaf).to(x.dtype());
  Tensor y = combined(node, weight, index_select(node.constant(Known::vector(targetOf)), 0, leaf), targets);
  std::int64_t transform = node.integer("post_transform", 0);
  if (transform < 0 || transform > 2)
    Node::fail("post_transform " + std::to_string(transform) + " is not supported");
  node.set(0, transform == 0 ? y : transform == 1 ? softmax(y, 1) : sigmoid(y));
}

} // namespace sluice::onnx

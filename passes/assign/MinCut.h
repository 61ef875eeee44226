// Minimum s-t cuts in directed graphs.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::passes {

/// A flow network between a source and a sink. Capacities may be raised between cuts. The flow found so far is kept, so
/// a series of similar cuts costs little more than the first.
class MinCut {
public:
  using Node = uint32_t;
  /// An arc that no finite cut may contain.
  static constexpr int64_t kInfinite = int64_t(1) << 60;

  explicit MinCut(Node nodes);

  Node addNode();
  Node nodeCount() const { return Node(first.size()); }

  /// The cost of cutting `from` -> `to`: counts if `from` is on the source's side and `to` on the sink's.
  void addArc(Node from, Node to, int64_t capacity);
  /// The cost of a node on the sink's side, and on the source's side. May be called again to add to either.
  void addTerminals(Node node, int64_t costOnSinkSide, int64_t costOnSourceSide);

  /// The cost of the cheapest cut. Then `onSinkSide` is valid.
  int64_t solve();
  /// Of all cheapest cuts, the one with the most nodes on the source's side.
  bool onSinkSide(Node node) const { return sinkSide[node]; }

private:
  struct Arc {
    Node to;
    uint32_t next;
    int64_t residual;
  };
  static constexpr uint32_t kNone = ~0u;

  bool label();
  int64_t augment(Node node, int64_t limit);

  std::vector<uint32_t> first; // per node, the head of its list of arcs; arc i ^ 1 is the reverse of arc i
  std::vector<Arc> arcs;
  std::vector<int64_t> excess; // positive: residual capacity from the source; negative: to the sink
  int64_t flow = 0;            // of terminal arcs of single nodes, plus the augmented flow
  std::vector<int32_t> level;  // distance to the sink in the residual graph; 0: unreachable
  std::vector<uint32_t> current;
  std::vector<Node> queue;
  std::vector<bool> sinkSide;
};

} // namespace sluice::passes

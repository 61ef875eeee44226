// Dinic's algorithm on levels counted from the sink, with terminal arcs folded into one signed number per node.
#include "passes/assign/MinCut.h"
#include <algorithm>
#include <cassert>

namespace sluice::passes {

MinCut::MinCut(Node nodes) : first(nodes, kNone), excess(nodes, 0) {}

MinCut::Node MinCut::addNode() {
  first.push_back(kNone);
  excess.push_back(0);
  return Node(first.size() - 1);
}

void MinCut::addArc(Node from, Node to, int64_t capacity) {
  assert(capacity >= 0 && from != to);
  arcs.push_back({to, first[from], capacity});
  first[from] = uint32_t(arcs.size() - 1);
  arcs.push_back({from, first[to], 0});
  first[to] = uint32_t(arcs.size() - 1);
}

void MinCut::addTerminals(Node node, int64_t costOnSinkSide, int64_t costOnSourceSide) {
  assert(costOnSinkSide >= 0 && costOnSourceSide >= 0);
  // A node with arcs from the source (cut when it is on the sink's side) and to the sink: their smaller part flows at
  // once.
  int64_t fromSource = std::max<int64_t>(excess[node], 0) + costOnSinkSide;
  int64_t toSink = std::max<int64_t>(-excess[node], 0) + costOnSourceSide;
  int64_t through = std::min(fromSource, toSink);
  flow += through;
  excess[node] = fromSource - toSink;
}

/// Breadth first from the sink over arcs with residual capacity; whether a node with source capacity is reached.
bool MinCut::label() {
  level.assign(first.size(), 0);
  queue.clear();
  for (Node node = 0; node < first.size(); ++node)
    if (excess[node] < 0) {
      level[node] = 1;
      queue.push_back(node);
    }
  bool reached = false;
  for (size_t i = 0; i < queue.size(); ++i) {
    Node node = queue[i];
    reached |= excess[node] > 0;
    for (uint32_t arc = first[node]; arc != kNone; arc = arcs[arc].next) {
      Node other = arcs[arc].to;
      if (level[other] > 0 || arcs[arc ^ 1].residual == 0)
        continue;
      level[other] = level[node] + 1;
      queue.push_back(other);
    }
  }
  return reached;
}

/// Sends up to `limit` from `node` down the levels to the sink. The depth is at most the number of nodes on a shortest
/// path, so the explicit stack is short. `current` keeps the position of each node's search.
int64_t MinCut::augment(Node start, int64_t limit) {
  std::vector<uint32_t> path; // arcs from `start`
  int64_t sent = 0;
  Node node = start;
  while (sent < limit) {
    if (excess[node] < 0) {
      int64_t amount = std::min(limit - sent, -excess[node]);
      for (uint32_t arc : path)
        amount = std::min(amount, arcs[arc].residual);
      excess[node] += amount;
      sent += amount;
      // Back to the start of the first arc that is now full.
      size_t keep = path.size();
      for (size_t i = path.size(); i-- > 0;) {
        arcs[path[i]].residual -= amount;
        arcs[path[i] ^ 1].residual += amount;
        if (arcs[path[i]].residual == 0)
          keep = i;
      }
      if (keep < path.size()) {
        node = arcs[path[keep] ^ 1].to;
        path.resize(keep);
      }
      if (excess[node] < 0 || sent == limit)
        continue;
    }
    uint32_t &arc = current[node];
    while (arc != kNone && (arcs[arc].residual == 0 || level[node] == 1 || level[arcs[arc].to] != level[node] - 1))
      arc = arcs[arc].next;
    if (arc != kNone) {
      path.push_back(arc);
      node = arcs[arc].to;
      continue;
    }
    if (path.empty())
      break;
    node = arcs[path.back() ^ 1].to;
    path.pop_back();
    current[node] = arcs[current[node]].next;
  }
  return sent;
}

int64_t MinCut::solve() {
  while (label()) {
    current = first;
    for (Node node : queue)
      if (excess[node] > 0) {
        int64_t sent = augment(node, excess[node]);
        excess[node] -= sent;
        flow += sent;
      }
  }
  sinkSide.assign(first.size(), false);
  for (Node node : queue)
    sinkSide[node] = true;
  return flow;
}

} // namespace sluice::passes

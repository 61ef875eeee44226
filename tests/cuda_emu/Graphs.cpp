// Graphs of the double of the CUDA driver: what a stream captures, as a list, launched into streams.
//
// What it assumes of a driver is in CONTRACTS.md. While a capture lasts, whatever may disturb it is refused and spoils it, to all
// threads or to the one that began it, or not at all, as its mode says; in its own stream also copies of memory that is not pinned.
// Other streams run between the parts of a launch.
#include "tests/cuda_emu/DriverState.h"

#include <utility>

using namespace sluice;
using namespace sluice::cuda_driver;

EXPORTED int cuStreamBeginCapture_v2(Stream *stream, int mode) {
  Turn turn;
  if (!current || !stream || stream->device != current)
    return InvalidHandle;
  if (mode < 0 || mode > 2)
    return InvalidValue;
  if (stream->capture)
    return IllegalState;
  stream->capture = Capture{mode};
  driver().capturing.insert(stream);
  return Success;
}

EXPORTED int cuStreamEndCapture(Stream *stream, Graph **graph) {
  Turn turn;
  *graph = nullptr;
  if (!current || !stream || stream->device != current)
    return InvalidHandle;
  if (!stream->capture)
    return IllegalState;
  driver().capturing.erase(stream);
  Capture capture = *std::exchange(stream->capture, std::nullopt);
  if (!capture.isValid)
    return CaptureInvalidated;
  *graph = new Graph{stream->device, std::move(capture.nodes)};
  return Success;
}

EXPORTED int cuGraphInstantiateWithFlags(Graph **executable, Graph *graph, unsigned long long flags) {
  Turn turn;
  if (!graph || flags != 0)
    return InvalidValue;
  *executable = new Graph{graph->device, graph->nodes};
  return Success;
}

EXPORTED int cuGraphDestroy(Graph *graph) {
  Turn turn;
  if (!graph)
    return InvalidValue;
  delete graph;
  return Success;
}

EXPORTED int cuGraphLaunch(Graph *executable, Stream *stream) {
  Turn turn;
  if (!executable || !stream || stream->device != current || executable->device != current)
    return InvalidHandle;
  if (stream->capture)
    return spoil(stream, CaptureUnsupported);
  for (const Node &node : executable->nodes)
    driver().scheduler->enqueue(stream->queue, [node, isAlive = executable->isAlive] {
      if (*isAlive)
        node();
    });
  return Success;
}

EXPORTED int cuGraphExecDestroy(Graph *executable) {
  Turn turn;
  if (!executable)
    return InvalidValue;
  *executable->isAlive = false;
  delete executable;
  return Success;
}

// Devices: where the values of a graph live and where its work runs.
//
//     g.set_devices("cpu,sim:0,sim:1");        // the target: the host, gpu(0) and gpu(1)
//     net.to(try_gpu(g));                      // parameters and buffers move; ops on them follow
//     Tensor y = net(x.to(gpu(0)));            // an explicit copy
//     net.fc.pin(gpu(1));                      // work moves; `set_copies` decides about the copies
#pragma once

#include "sluice/language.h"

#include <concepts>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class Graph;
namespace detail {
class GraphImpl;
} // namespace detail

/// The name of a device: the host, or an accelerator by its number in the target of a graph (torch.device). Any device
/// can be named; a graph throws Error when it uses one that its target lacks. Every backend's accelerators are `gpu`.
class Device {
public:
  /// The line of a call, for error messages; a default argument everywhere.
  using Where = std::source_location;
  /// The host, or an accelerator.
  enum class Kind { cpu, gpu };

  /// Parses text, as in `x.to("cuda:1")`: "cpu", "gpu", "cuda", "gpu:1", "cuda:1", "/GPU:1", "/device:GPU:1", either of
  /// the last two after the name of a host ("/job:worker/task:0/device:GPU:1"), and the results of `str()`. Throws
  /// Error for any other text.
  template <class Text>
    requires std::convertible_to<const Text &, std::string_view>
  Device(const Text &spelling, Where where = Where::current()) : Device(std::string_view(spelling), Parse(), where) {}
  Device(std::nullptr_t) = delete;

  /// Host or accelerator.
  Kind kind() const { return type; }
  /// The number, from 0; 0 for the host.
  int index() const { return number; }
  /// "/job:worker/task:0"; empty: the host that runs the program. A graph cannot use devices of other hosts.
  const std::string &host() const { return hostName; }

  /// "cpu()", "gpu(1)", or with a host's name "/job:worker/task:0/device:GPU:1".
  std::string str() const;
  bool operator==(const Device &) const = default;

private:
  struct Parse {};
  Device(std::string_view spelling, Parse, Where where);
  Device(Kind kind, int index, std::string host) : type(kind), number(index), hostName(std::move(host)) {}
  friend Device cpu(int);
  friend Device gpu(int, Where);

  Kind type;
  int number;
  std::string hostName;
};

/// The host, with all cores and memory; the number has no effect.
Device cpu(int index = 0);
/// Accelerator `index` of the target, from 0 in the order of Graph::set_devices. A negative index throws Error.
Device gpu(int index = 0, Device::Where where = Device::Where::current());

/// Writes device.str().
std::ostream &operator<<(std::ostream &os, const Device &device);

// --- the target of a graph, not the machine that builds the graph

/// The number of accelerators (torch.cuda.device_count), and whether there is one (torch.cuda.is_available).
int gpu_count(const Graph &graph);
bool is_available(const Graph &graph);
/// gpu(index) if the target has it; otherwise cpu().
Device try_gpu(const Graph &graph, int index = 0);
/// All accelerators in order; {cpu()} if there is none.
std::vector<Device> try_all_gpus(const Graph &graph);

/// During its lifetime, new inputs, parameters, buffers and constants of the graph live on a device (torch.device as a
/// context manager). Existing values do not move. Scopes nest, and the destructor restores the scope before. A device
/// that the target lacks throws Error.
///
///     DeviceScope on{g, gpu(1)};
///     Tensor mask = g.ones({28, 28});   // on gpu(1)
class DeviceScope {
public:
  /// Begins the scope; its end is the destructor.
  DeviceScope(Graph &graph, const Device &device, Device::Where where = Device::Where::current());
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;
  ~DeviceScope();

private:
  std::shared_ptr<detail::GraphImpl> graph;
  std::optional<Device> before;
};

} // namespace sluice

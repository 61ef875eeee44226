// Devices: where the values of a graph live and where its work happens.
//
//     g.set_devices("cpu,sim:0,sim:1");        // the target: the host, gpu(0) and gpu(1)
//     net.to(try_gpu(g));                      // parameters and buffers move; ops on them follow
//     Tensor y = net(x.to(gpu(0)));            // a copy that one can see
//     net.fc.pin(gpu(1));                      // work moves; what crosses for it follows `set_copies`
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

/// A device by name: the host, or an accelerator by its place in the graph's target. Naming a device that is not there
/// is fine; using it in a graph throws Error.
class Device {
public:
  using Where = std::source_location;
  enum class Kind { cpu, gpu };

  /// From text, as in `x.to("cuda:1")`: "cpu", "gpu", "cuda", "gpu:1", "cuda:1", "/GPU:1", "/device:GPU:1", any of the
  /// last two after a host's name ("/job:worker/task:0/device:GPU:1"), and what `str()` gives. Throws Error for others.
  template <class Text>
    requires std::convertible_to<const Text &, std::string_view>
  Device(const Text &spelling, Where where = Where::current()) : Device(std::string_view(spelling), Parse(), where) {}
  Device(std::nullptr_t) = delete;

  Kind kind() const { return type; }
  /// 0 for the host.
  int index() const { return number; }
  /// "/job:worker/task:0"; empty: the host that runs the program, the only one that a graph can use.
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

/// All cores and all memory of the host: the same device for every number.
Device cpu(int index = 0);
/// An accelerator of the target, counted from 0 in the order of its list, whatever its backend.
Device gpu(int index = 0, Device::Where where = Device::Where::current());

std::ostream &operator<<(std::ostream &os, const Device &device);

// --- what a graph's target has: never what the machine has that builds the graph

/// 0 where the target is the host alone.
int gpu_count(const Graph &graph);
bool is_available(const Graph &graph);
/// gpu(i) if the target has it, cpu() if not.
Device try_gpu(const Graph &graph, int index = 0);
/// All accelerators in order; cpu() where there is none.
std::vector<Device> try_all_gpus(const Graph &graph);

/// While it lives, what is created in the graph lives on a device: inputs, parameters, buffers, `zeros`, `ones`,
/// `full`. It moves nothing that exists, and fixes no place for the work on it. Scopes nest; an exception leaves them
/// like a return does. A device that the target lacks throws Error.
///
///     DeviceScope on{g, gpu(1)};
///     Tensor mask = g.ones({28, 28});   // on gpu(1)
class DeviceScope {
public:
  DeviceScope(Graph &graph, const Device &device, Device::Where where = Device::Where::current());
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;
  ~DeviceScope();

private:
  std::shared_ptr<detail::GraphImpl> graph;
  std::optional<Device> before;
};

} // namespace sluice

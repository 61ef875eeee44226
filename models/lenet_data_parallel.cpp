// LeNet on several devices from scratch: plain parameters, copied to every device; a batch of a static size, split
// among them; losses that are summed. A copy's gradient is made where the copy is, and the parameter gets their sum.
#include "Options.h"
#include <sluice/sluice.h>

using namespace sluice;

/// What the accelerators share, or the host if there are none.
static std::vector<Device> devicesOf(const Graph &graph) {
  std::vector<Device> devices;
  for (const Graph::DeviceInfo &info : graph.devices())
    devices.push_back(info.device);
  if (devices.size() > 1)
    devices.erase(devices.begin());
  return devices;
}

/// W1, b1, W2, b2, W3, b3, W4, b4.
static std::vector<Tensor> parametersOf(nn::Module &net, const Device &device) {
  const Shape weights[] = {{20, 1, 3, 3}, {50, 20, 5, 5}, {128, 800}, {10, 128}};
  int layer = 0;
  std::vector<Tensor> params;
  for (const Shape &weight : weights) {
    std::string number = std::to_string(++layer);
    net.parameter("W" + number, weight, init::normal(0.0, 0.01));
    net.parameter("b" + number, {weight[0]}, init::zeros());
  }
  net.to(device);
  for (const auto &[name, param] : net.named_parameters())
    params.push_back(param);
  return params;
}

static Tensor lenet(const Tensor &x, const std::vector<Tensor> &params) {
  Tensor h1 = avg_pool2d(relu(conv2d(x, params[0], params[1])), 2);
  Tensor h2 = avg_pool2d(relu(conv2d(h1, params[2], params[3])), 2);
  Tensor h3 = relu(linear(h2.flatten(1), params[4], params[5]));
  return linear(h3, params[6], params[7]);
}

/// The logits of every device's rows, and the sum of the losses of all rows, on the first device.
static std::pair<std::vector<Tensor>, Tensor> train_batch(const Tensor &x, const Tensor &y,
                                                          const std::vector<std::vector<Tensor>> &device_params,
                                                          const std::vector<Device> &devices) {
  auto [xs, ys] = split_batch(x, y, devices, {.even_split = false});
  std::vector<Tensor> logits, losses;
  for (size_t i = 0; i < devices.size(); ++i) {
    logits.push_back(lenet(xs[i].dtype() == u8 ? xs[i] / 255 : xs[i], device_params[i]));
    losses.push_back(cross_entropy(logits[i], ys[i], Reduction::sum));
  }
  return {logits, allreduce(losses).front()};
}

static Graph build(const models::Options &options) {
  Graph graph = models::graph("lenet_data_parallel", options);
  Tensor x = graph.input("image", options.input == "u8" ? u8 : f32, {options.batch, 1, 28, 28});
  Tensor y = graph.input("label", i32, {options.batch});
  std::vector<Device> devices = devicesOf(graph);
  nn::Module net{graph};
  models::pin(net, options); // it has no parts
  std::vector<Tensor> params = parametersOf(net, devices.front());
  std::vector<std::vector<Tensor>> device_params;
  device_params.reserve(devices.size());
  for (const Device &device : devices)
    device_params.push_back(get_params(params, device));
  auto [logits, loss] = train_batch(x, y, device_params, devices);
  for (Tensor &part : logits)
    part = part.to(devices.front());
  graph.output("logits", cat(logits));
  graph.minimize(loss / double(options.batch), optim::SGD{.lr = options.lr});
  return graph;
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "lenet_data_parallel", {.init = "notebook", .inits = {"notebook"}, .lr = 0.2}, build);
}

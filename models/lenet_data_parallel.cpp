// LeNet on several devices, as in the multi-GPU chapter of the book "Dive into Deep Learning". Each device has a copy
// of the parameters, and a share of the rows of a batch with static size. Gradients are summed over the devices, and
// each device updates its copy by the sums.
#include "Options.h"
#include <sluice/sluice.h>

using namespace sluice;

/// Per device: W1, b1, W2, b2, W3, b3, W4, b4.
using PerDevice = std::vector<std::vector<Tensor>>;

/// The accelerators, or the host if there are none.
static std::vector<Device> devicesOf(const Graph &graph) {
  std::vector<Device> devices;
  for (const Graph::DeviceInfo &info : graph.devices())
    devices.push_back(info.device);
  if (devices.size() > 1)
    devices.erase(devices.begin());
  return devices;
}

/// Creates the parameters on the host. They keep their initial values: only their copies on the devices are trained.
static std::vector<Tensor> parametersOf(nn::Module &net) {
  const Shape weights[] = {{20, 1, 3, 3}, {50, 20, 5, 5}, {128, 800}, {10, 128}};
  int layer = 0;
  std::vector<Tensor> params;
  for (const Shape &weight : weights) {
    std::string number = std::to_string(++layer);
    net.parameter("W" + number, weight, init::normal(0.0, 0.01));
    net.parameter("b" + number, {weight[0]}, init::zeros());
  }
  net.to(cpu());
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

static void sgd(std::vector<Tensor> &params, const std::vector<Tensor> &grads, const Tensor &lr, double batch) {
  for (size_t i = 0; i < params.size(); ++i)
    params[i].copy_(params[i] - lr * grads[i] / batch);
}

/// Builds a training step. Returns the logits of all rows and the mean loss, both on the first device and from the
/// parameters before their update.
static std::pair<Tensor, Tensor> train_batch(const Tensor &x, const Tensor &y, PerDevice &params,
                                             const std::vector<Device> &devices, const Tensor &lr, double batch) {
  auto [xs, ys] = split_batch(x, y, devices, {.even_split = false});
  std::vector<Tensor> logits, losses;
  for (size_t i = 0; i < devices.size(); ++i) {
    logits.push_back(lenet(xs[i].dtype() == u8 ? xs[i] / 255 : xs[i], params[i]));
    losses.push_back(cross_entropy(logits[i], ys[i], Reduction::sum));
  }
  PerDevice grads;
  for (size_t i = 0; i < devices.size(); ++i)
    grads.push_back(grad(losses[i], params[i]));
  for (size_t p = 0; p < grads.front().size(); ++p) {
    std::vector<Tensor> each;
    for (const std::vector<Tensor> &own : grads)
      each.push_back(own[p]);
    each = allreduce(each);
    for (size_t i = 0; i < devices.size(); ++i)
      grads[i][p] = each[i];
  }
  for (size_t i = 0; i < devices.size(); ++i)
    sgd(params[i], grads[i], lr, batch);
  for (Tensor &part : logits)
    part = part.to(devices.front());
  return {cat(logits), allreduce(losses).front() / batch};
}

static Graph build(const models::Options &options) {
  Graph graph = models::graph("lenet_data_parallel", options);
  graph.set_data("mnist-10k");
  graph.set_shuffle(true); // digits may be shuffled even though the batch size is static
  Tensor x = graph.input("image", options.input == "u8" ? u8 : f32, {options.batch, 1, 28, 28});
  Tensor y = graph.input("label", i32, {options.batch});
  std::vector<Device> devices = devicesOf(graph);
  nn::Module net{graph};
  std::vector<Tensor> params = parametersOf(net);
  PerDevice device_params;
  for (const Device &device : devices)
    device_params.push_back(get_params(params, device));
  auto [logits, loss] = train_batch(x, y, device_params, devices, graph.hyper("lr", options.lr), double(options.batch));
  graph.metric("loss", loss);
  graph.metric("accuracy", accuracy(logits, y.to(devices.front())));
  graph.output("logits", logits);
  return graph;
}

int main(int argc, char **argv) {
  return models::run(argc, argv, "lenet_data_parallel",
                     {.init = "notebook", .inits = {"notebook"}, .lr = 0.2, .hasParts = false}, build);
}

// "Training with Multiple GPUs" of Dive into Deep Learning: data parallelism from scratch, for LeNet on small images that
// are drawn here.
#include "Document.h"

#include <chrono>
#include <cstdio>
#include <iostream>

using namespace sluice;
using documents::heading;
using documents::textOf;

using Params = std::vector<Array>; ///< W1, b1, ..., W4, b4

namespace {

constexpr std::int64_t kBatches = 20;

/// Images [n, 1, 28, 28] and their classes [n].
struct Data {
  Array X, y;
};

} // namespace

static Params initialParams() {
  Array keys = random::split(random::key(0), 4);
  Params params;
  std::int64_t layer = 0;
  for (const Shape &shape : {Shape{20, 1, 3, 3}, Shape{50, 20, 5, 5}, Shape{800, 128}, Shape{128, 10}}) {
    params.push_back(random::normal(keys[{layer++}], shape, 0, 0.1));
    params.push_back(zeros(shape.size() == 2 ? Shape{shape[1]} : Shape{shape[0]}));
  }
  return params;
}

static Array lenet(const Array &X, const Params &params) {
  Array h1 = avg_pool2d(relu(conv2d(X, params[0], params[1])), 2);
  Array h2 = avg_pool2d(relu(conv2d(h1, params[2], params[3])), 2);
  Array h3 = relu(matmul(flatten(h2, 1), params[4]) + params[5]);
  return matmul(h3, params[6]) + params[7];
}

static Array loss(const Array &logits, const Array &y) { return cross_entropy(logits, y, Reduction::none); }

/// Copies of the parameters on a device, with gradients.
static Params getParams(const Params &params, const Device &device) {
  Params copies;
  for (const Array &param : params)
    copies.push_back(param.copy_to(device).attach_grad());
  return copies;
}

static void sgd(Params &params, double lr, std::int64_t batchSize) {
  for (Array &param : params)
    param -= lr / double(batchSize) * param.grad();
}

static void trainBatch(const Data &batch, std::vector<Params> &deviceParams, const std::vector<Device> &devices,
                       double lr) {
  auto [Xs, ys] = split_batch(batch.X, batch.y, devices);
  {
    auto tape = record();
    std::vector<Array> losses;
    for (size_t i = 0; i < devices.size(); ++i)
      losses.push_back(loss(lenet(Xs[i], deviceParams[i]), ys[i]));
    for (const Array &each : losses)
      each.backward();
  }
  for (size_t i = 0; i < deviceParams[0].size(); ++i) {
    std::vector<Array> gradients;
    for (const Params &params : deviceParams)
      gradients.push_back(params[i].grad());
    allreduce(gradients); // the sum of all, on each device
  }
  for (Params &params : deviceParams)
    sgd(params, lr, batch.X.size(0)); // divided by the rows of all devices
}

/// Images of ten patterns with noise.
static Data draw(std::int64_t rows, std::uint64_t seed) {
  Array keys = random::split(random::key(seed)), patterns = random::uniform(random::key(5), {10, 1, 28, 28}, -1, 1);
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < rows; ++i)
    labels.push_back(std::int32_t(i % 10));
  Array y = array(labels, {rows});
  return {index_select(patterns, 0, y) + random::normal(keys[{0}], {rows, 1, 28, 28}, 0, 0.1), y};
}

static void train(const std::vector<Device> &devices, std::int64_t batchSize, double lr) {
  Data trainData = draw(kBatches * batchSize, 1), testData = draw(100, 2);
  std::vector<Params> deviceParams;
  for (const Device &device : devices)
    deviceParams.push_back(getParams(initialParams(), device));
  auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < kBatches; ++i) {
    Index rows = slice(i * batchSize, (i + 1) * batchSize);
    trainBatch({trainData.X[{rows}], trainData.y[{rows}]}, deviceParams, devices, lr);
  }
  wait_all();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Array logits = lenet(testData.X.to(devices[0]), deviceParams[0]);
  std::printf("test acc: %.2f, %.1f sec/epoch on %s\n", accuracy(logits, testData.y.to(devices[0])).item(), seconds,
              textOf(devices).c_str());
  for (size_t i = 1; i < devices.size(); ++i)
    for (size_t j = 0; j < deviceParams[i].size(); ++j)
      if (deviceParams[i][j].to_vector<float>() != deviceParams[0][j].to_vector<float>())
        std::printf("parameter %zu differs on %s\n", j, devices[i].str().c_str());
}

static void notebook() {
  heading("Data synchronization");
  Params newParams = getParams(initialParams(), try_gpu());
  std::cout << "b1 weight: " << newParams[1] << '\n' << "b1 grad: " << newParams[1].grad() << '\n';
  std::vector<Array> data;
  for (int i = 0; i < 2; ++i)
    data.push_back(full({1, 2}, i + 1, f32, try_gpu(i)));
  std::cout << "before allreduce:\n" << data[0] << '\n' << data[1] << '\n';
  allreduce(data);
  std::cout << "after allreduce:\n" << data[0] << '\n' << data[1] << '\n';

  heading("Distributing data");
  Array batch = arange(24, f32).reshape({4, 6});
  std::cout << "input:\n" << batch << '\n' << "load into " << textOf(try_all_gpus()) << "\noutput:\n";
  for (const Array &part : split(batch, try_all_gpus()))
    std::cout << part << '\n';
  documents::printError([&] { split_batch(batch, arange(3), try_all_gpus()); });

  heading("Training");
  train({try_gpu()}, 16, 0.25);
  if (gpu_count() > 1)
    train(try_all_gpus(), 16, 0.25);
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "notebook", "Runs the code of \"Training with Multiple GPUs\", for small images.",
                        notebook);
}

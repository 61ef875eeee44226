// "GPUs" of Dive into Deep Learning, in PyTorch's edition.
#include "Document.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sluice/array/train.h>
#include <sluice/sluice.h>
#include <unistd.h>

using namespace sluice;
using documents::heading;
using documents::textOf;

static void computingDevices() {
  heading("Computing devices");
  std::cout << cpu() << ", " << gpu() << ", " << gpu(1) << '\n';
  std::cout << std::boolalpha << (Device("cuda") == gpu()) << ", " << (Device("cuda:1") == gpu(1)) << '\n';
  std::cout << gpu_count() << '\n';
  std::cout << try_gpu() << ", " << try_gpu(10) << ", " << textOf(try_all_gpus()) << '\n';
}

static void arraysAndDevices() {
  heading("Tensors and GPUs");
  Array x = array({1, 2, 3});
  std::cout << x.device() << '\n';

  heading("Storage on the GPU");
  Array X = ones({2, 3}, f32, try_gpu());
  std::cout << X << '\n';
  Array Y = random::uniform(random::key(0, try_gpu(1)), {2, 3});
  std::cout << Y << '\n';

  heading("Copying");
  documents::printError([&] { X + Y; });
  Array Z = X.to(try_gpu(1)); // X.cuda(1)
  std::cout << X << '\n' << Z << '\n';
  std::cout << Y + Z << '\n';
  std::cout << Z.to(try_gpu(1)).is(Z) << '\n'; // Z.cuda(1) is Z
}

// Logs of every step stay on the device, and cross once at the end.
static void sideNotes() {
  heading("Side notes");
  auto copies = [] {
    std::int64_t count = 0;
    for (const ArrayTransfers &pair : transfers())
      count += pair.copies;
    return count;
  };
  Array m = random::uniform(random::key(1, try_gpu()), {100, 100});
  wait_all();
  std::int64_t before = copies();
  std::vector<Array> norms;
  for (int i = 0; i < 10; ++i)
    norms.push_back(matmul(m, m).norm());
  std::vector<float> logged = stack(norms).to_vector<float>();
  std::cout << "norms: " << logged.size() << ", copies: " << copies() - before << '\n';
}

static void networks() {
  heading("Neural networks and GPUs");
  manual_seed(0);
  nn::Sequential net;
  net.add<nn::LazyLinear>(1);
  net.to(try_gpu());
  Array X = ones({2, 3}, f32, try_gpu());
  std::cout << net(X) << '\n';
  std::cout << net.parameters()[0].device() << '\n'; // net[0].weight.data.device
  if (is_available())
    documents::printError([&] { net(ones({2, 3})); });

  // The second exercise: parameters that one device writes, and another one reads.
  std::string file =
      std::filesystem::temp_directory_path() / ("parameters-" + std::to_string(getpid()) + ".safetensors");
  net.save(file);
  nn::Sequential other;
  other.add<nn::Linear>(3, 1).to(try_gpu(1));
  other.load(file);
  std::filesystem::remove(file);
  documents::printDevices(other);
  std::cout << allclose(other(X.to(try_gpu(1))).cpu(), net(X).cpu()) << '\n';
}

namespace {

/// The trainer of the book. With GPUs, the model and each batch move to the first one.
class Trainer {
public:
  Trainer(int maxEpochs, int numGpus = 0, double gradientClip = 0) : maxEpochs(maxEpochs), gradientClip(gradientClip) {
    for (int i = 0; i < std::min(numGpus, gpu_count()); ++i)
      gpus.push_back(gpu(i));
  }

  void fit(nn::Module &net, const std::vector<std::pair<Array, Array>> &batches) {
    if (!gpus.empty())
      net.to(gpus[0]); // prepare_model
    optim::Trainer trainer(net, optim::SGD{.lr = 0.1}, {.clip_grad_norm = gradientClip});
    for (int epoch = 0; epoch < maxEpochs; ++epoch) {
      std::vector<Array> losses; // on the device until the end of the epoch
      for (const auto &batch : batches) {
        auto [x, y] = prepareBatch(batch);
        auto tape = record();
        losses.push_back(mse_loss(net(x), y));
        losses.back().backward();
        trainer.step();
      }
      std::printf("epoch %d: loss %.3f\n", epoch, stack(losses).mean().item());
    }
  }

private:
  std::pair<Array, Array> prepareBatch(const std::pair<Array, Array> &batch) const {
    return gpus.empty() ? batch : std::pair(batch.first.to(gpus[0]), batch.second.to(gpus[0]));
  }

  int maxEpochs;
  double gradientClip;
  std::vector<Device> gpus;
};

} // namespace

static void training() {
  heading("The trainer");
  Array w = array({{2.f}, {-3.4f}}), keys = random::split(random::key(2), 8);
  std::vector<std::pair<Array, Array>> batches;
  for (std::int64_t i = 0; i < 8; ++i) {
    Array x = random::normal(keys[{i}], {32, 2});
    batches.emplace_back(x, matmul(x, w) + 4.2);
  }
  nn::Sequential net;
  net.add<nn::Linear>(2, 1);
  Trainer(/*maxEpochs=*/3, /*numGpus=*/1, /*gradientClip=*/10).fit(net, batches);
  documents::printDevices(net);
}

static void chapter() {
  computingDevices();
  arraysAndDevices();
  sideNotes();
  networks();
  training();
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "pytorch", "Runs the code of PyTorch's edition of the chapter \"GPUs\".", chapter);
}

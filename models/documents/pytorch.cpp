// "GPUs" of Dive into Deep Learning, in PyTorch's edition.
#include "Document.h"

#include <algorithm>
#include <iostream>

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

static void chapter() {
  computingDevices();
  arraysAndDevices();
  sideNotes();
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "pytorch", "Runs the code of PyTorch's edition of the chapter \"GPUs\".", chapter);
}

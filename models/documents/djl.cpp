// "GPUs" of Dive into Deep Learning, in DJL's edition.
#include "Document.h"

#include <iostream>
#include <sluice/sluice.h>

using namespace sluice;
using documents::heading;
using documents::textOf;

static void computingDevices() {
  heading("Computing devices");
  std::cout << cpu() << ", " << gpu() << ", " << gpu(1) << '\n'; // Device.cpu(), Device.gpu(), Device.gpu(1)
  std::cout << "GPU count: " << gpu_count() << '\n';             // Engine.getInstance().getGpuCount()
  std::cout << try_gpu() << ", " << try_gpu(3) << ", " << textOf(try_all_gpus()) << '\n';
}

static void arraysAndDevices() {
  heading("Tensors and GPUs");
  Array x = array({1, 2, 3});      // manager.create(new int[]{1, 2, 3})
  std::cout << x.device() << '\n'; // x.getDevice()

  heading("Storage on the GPU");
  x = ones({2, 3}, f32, try_gpu()); // manager.ones(new Shape(2, 3), DataType.FLOAT32, tryGpu(0))
  std::cout << x << '\n';
  Array y = random::uniform(random::key(0, try_gpu(1)), {2, 3}, -1, 1); // manager.randomUniform(-1, 1, ...)
  std::cout << y << '\n';

  heading("Copying");
  documents::printError([&] { x + y; }); // x.add(y)
  Array z = x.copy_to(try_gpu(1));       // x.toDevice(tryGpu(1), true)
  std::cout << x << '\n' << z << '\n';
  std::cout << y + z << '\n';                                    // y.add(z)
  std::cout << std::boolalpha << z.to(try_gpu(1)).is(z) << '\n'; // z.toDevice(tryGpu(1), false)
}

static void networks() {
  heading("Neural networks and GPUs");
  nn::Sequential net;
  net.add<nn::LazyLinear>(1); // Linear.builder().setUnits(1).build()
  net.to(try_gpu());          // Model.newInstance("lin-reg", tryGpu(0))
  Array x = ones({2, 3}, f32, try_gpu());
  std::cout << net(x) << '\n'; // net.forward(parameterStore, new NDList(x), false)
  std::cout << net.parameters()[0].device() << '\n';
}

// Memory is freed at the end of an array, as at the end of its NDManager, and stays with the process for later arrays.
static void memoryOfArrays() {
  heading("Memory");
  zeros({256, 256}, f32, try_gpu());
  ArrayMemoryCounts before = memory(try_gpu());
  {
    Array x = empty({256, 256}, f32, try_gpu());
    std::cout << memory(try_gpu()).in_use - before.in_use << " bytes more in use\n";
  }
  std::cout << memory(try_gpu()).in_use - before.in_use << " bytes more in use, "
            << memory(try_gpu()).allocations - before.allocations << " calls of the driver\n";
}

static void chapter() {
  computingDevices();
  arraysAndDevices();
  networks();
  memoryOfArrays();
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "djl", "Runs the code of DJL's edition of the chapter \"GPUs\".", chapter);
}

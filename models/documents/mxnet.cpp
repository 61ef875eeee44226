// "GPUs" of Dive into Deep Learning, in MXNet's edition.
#include "Document.h"

#include <iostream>
#include <sluice/sluice.h>

using namespace sluice;
using documents::heading;
using documents::textOf;

static void computingDevices() {
  heading("Computing devices");
  std::cout << cpu() << ", " << gpu() << ", " << gpu(1) << '\n'; // npx.cpu(), npx.gpu(), npx.gpu(1)
  std::cout << gpu_count() << '\n';                              // npx.num_gpus()
  std::cout << try_gpu() << ", " << try_gpu(10) << ", " << textOf(try_all_gpus()) << '\n';
}

static void arraysAndDevices() {
  heading("Tensors and GPUs");
  Array x = array({1, 2, 3});
  std::cout << x.device() << '\n'; // x.ctx

  heading("Storage on the GPU");
  Array X = ones({2, 3}, f32, try_gpu()); // np.ones((2, 3), ctx=try_gpu())
  std::cout << X << '\n';
  Array Y = random::uniform(random::key(0, try_gpu(1)), {2, 3}); // np.random.uniform(size=(2, 3), ctx=try_gpu(1))
  std::cout << Y << '\n';

  heading("Copying");
  Array Z = X.copy_to(try_gpu(1)); // X.copyto(try_gpu(1)): always a copy
  std::cout << X << '\n' << Z << '\n';
  std::cout << Y + Z << '\n';
  std::cout << std::boolalpha << Z.to(try_gpu(1)).is(Z) << '\n'; // Z.as_in_ctx(try_gpu(1)) is Z
  std::cout << Z.copy_to(try_gpu(1)).is(Z) << '\n';              // Z.copyto(try_gpu(1)) is Z
  Array existing = zeros({2, 3}, f32, try_gpu());
  Y.copy_to(existing); // Y.copyto(existing)
  std::cout << existing << '\n';
}

static void networks() {
  heading("Neural networks and GPUs");
  nn::Sequential net;
  net.add<nn::LazyLinear>(1); // nn.Dense(1)
  net.to(try_gpu());          // net.initialize(ctx=try_gpu())
  Array X = ones({2, 3}, f32, try_gpu());
  std::cout << net(X) << '\n';
  std::cout << net.parameters()[0].device() << '\n'; // net[0].weight.data().ctx
}

// set_scratch_params_device: parameters move to a device, and get gradients there.
static void scratchParameters() {
  heading("Parameters from scratch");
  Array w = random::normal(random::key(1), {3, 1}, 0, 0.01), b = zeros({1});
  for (Array *parameter : {&w, &b}) {
    *parameter = parameter->to(try_gpu()); // as_in_ctx
    parameter->attach_grad();
  }
  Array X = ones({2, 3}, f32, try_gpu());
  {
    auto tape = record(); // autograd.record()
    Array y = matmul(X, w) + b;
    y.backward(); // of a vector: its sum
  }
  wait_all(); // npx.waitall()
  std::cout << w.grad() << '\n' << b.grad() << '\n';
}

static void chapter() {
  computingDevices();
  arraysAndDevices();
  networks();
  scratchParameters();
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "mxnet", "Runs the code of MXNet's edition of the chapter \"GPUs\".", chapter);
}

// "GPUs" of Dive into Deep Learning, in JAX's edition. The random numbers are those of the document.
#include "Document.h"

#include <iostream>
#include <sluice/sluice.h>

using namespace sluice;
using documents::heading;
using documents::textOf;

static void print(const Array &x) { std::cout << x.str({.precision = 8}) << '\n'; }

static void computingDevices() {
  heading("Computing devices");
  std::cout << cpu() << ", " << gpu() << ", " << gpu(1) << '\n'; // jax.devices('gpu')[1]
  std::cout << gpu_count() << '\n'; // 0 without a GPU, where jax.device_count('gpu') raises
  std::cout << try_gpu() << ", " << try_gpu(10) << ", " << textOf(try_all_gpus()) << '\n';
}

static void arraysAndDevices() {
  heading("Tensors and GPUs");
  set_default_device(try_gpu()); // JAX creates arrays on the GPU
  Array x = array({1, 2, 3});
  std::cout << x.device() << '\n';

  heading("Storage on the GPU");
  Array X = ones({2, 3}).to(try_gpu()); // jax.device_put(jnp.ones((2, 3)), try_gpu())
  print(X);
  Array Y = random::uniform(random::key(0), {2, 3}).to(try_gpu(1)); // jax.random.uniform(jax.random.PRNGKey(0), (2, 3))
  print(Y);

  heading("Copying");
  Array Z = X.to(try_gpu(1)); // jax.device_put(X, try_gpu(1))
  print(X);
  print(Z);
  print(Y + Z);
  Array Z2 = Z.copy_to(try_gpu(1)); // jax.device_put(Z, try_gpu(1))
  std::cout << std::boolalpha << Z2.is(Z) << '\n';
}

static void randomKeys() {
  heading("Random keys");
  Array keys = random::split(random::key(0)); // jax.random.split(jax.random.PRNGKey(0))
  std::cout << keys << '\n';
  print(random::normal(keys[{1}], {1})); // jax.random.normal(subkey, (1,))
}

// net.init and net.apply: parameters are values outside of the network.
static void networks() {
  heading("Neural networks and GPUs");
  Array keys = random::split(random::key(0)), x = random::normal(keys[{0}], {1, 10});
  nn::Sequential net;
  net.add<nn::LazyLinear>(1);
  net(x); // creates the parameters
  std::vector<std::pair<std::string, Array>> params = net.state_dict();
  auto apply =
      jit([](const std::vector<Tensor> &leaves, const Tensor &input) { return linear(input, leaves[0], leaves[1]); });
  Array y = apply(std::vector<Array>{params[0].second, params[1].second}, x);
  std::cout << y << ", " << std::boolalpha << allclose(y, net(x)) << '\n';
  documents::printDevices(net); // jax.tree_util.tree_map(lambda x: x.device(), params)
}

static void chapter() {
  computingDevices();
  arraysAndDevices();
  randomKeys();
  networks();
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "jax", "Runs the code of JAX's edition of the chapter \"GPUs\".", chapter);
}

// "GPUs" of Dive into Deep Learning, in TensorFlow's edition.
#include "Document.h"

#include <deque>
#include <iostream>
#include <sluice/sluice.h>

using namespace sluice;
using documents::heading;
using documents::textOf;

static void computingDevices() {
  heading("Computing devices");
  std::cout << Device("/CPU:0") << ", " << Device("/GPU:0") << ", " << Device("/GPU:1") << '\n'; // tf.device('/GPU:1')
  std::cout << gpu_count() << '\n'; // len(tf.config.experimental.list_physical_devices('GPU'))
  std::cout << try_gpu() << ", " << try_gpu(10) << ", " << textOf(try_all_gpus()) << '\n';
}

static void arraysAndDevices() {
  heading("Tensors and GPUs");
  Array x = array({1, 2, 3});
  std::cout << x.device() << '\n';
  Device full("/job:localhost/replica:0/task:0/device:GPU:0"); // a device of a named host
  std::cout << full << '\n';
  documents::printError([&] { zeros({2}, f32, full); });

  heading("Storage on the GPU");
  Array X, Y;
  {
    DefaultDevice scope(try_gpu()); // with try_gpu():
    X = ones({2, 3});
  }
  {
    DefaultDevice scope(try_gpu(1)); // with try_gpu(1):
    Y = random::uniform(random::key(0), {2, 3});
  }
  std::cout << X << '\n' << Y << '\n';

  heading("Copying");
  {
    DefaultDevice scope(try_gpu(1));
    Array same = X; // a scope moves nothing
    std::cout << same.device() << '\n';
  }
  Array Z = X.to(try_gpu(1));
  std::cout << X << '\n' << Z << '\n';
  std::cout << Y + Z << '\n';
  Array Z2 = Z;
  std::cout << std::boolalpha << Z2.is(Z) << '\n';
}

// MirroredStrategy: a replica of the network on each device, which begin with equal parameters.
static void networks() {
  heading("Neural networks and GPUs");
  std::deque<nn::Sequential> replicas;
  for (const Device &device : try_all_gpus()) {
    nn::Sequential &net = replicas.emplace_back();
    net.add<nn::LazyLinear>(1).to(device); // tf.keras.layers.Dense(1)
    std::cout << net(ones({2, 3}, f32, device)) << '\n';
    net.load_state_dict(replicas.front().state_dict());
  }
  for (nn::Sequential &net : replicas)
    documents::printDevices(net); // net.layers[0].weights[0].device
  Array X = ones({2, 3});
  for (nn::Sequential &net : replicas)
    std::cout << net(X.to(net.parameters()[0].device())) << '\n';
}

static void chapter() {
  computingDevices();
  arraysAndDevices();
  networks();
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "tensorflow", "Runs the code of TensorFlow's edition of the chapter \"GPUs\".",
                        chapter);
}

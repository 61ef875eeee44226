// "GPUs" of Dive into Deep Learning, in TensorFlow's edition.
#include "Document.h"

#include <iostream>

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

static void chapter() {
  computingDevices();
  arraysAndDevices();
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "tensorflow", "Runs the code of TensorFlow's edition of the chapter \"GPUs\".",
                        chapter);
}

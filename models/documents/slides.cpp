// The slides "Using GPUs": arrays like others, elements in place, copies, and a module on one and on two devices.
#include "Document.h"

#include <iostream>

using namespace sluice;
using documents::heading;

static void arraysLikeOthers() {
  heading("Arrays with the dtype and device of another");
  Array u = full({3, 5}, 1, f64, cpu());
  std::cout << u.new_zeros({2, 3}) << '\n';
  Array v = zeros({3, 5}, f16, try_gpu(1));
  std::cout << v.new_full({2, 3}, 1.4) << '\n';
}

static void elementsInPlace() {
  heading("Elements in place");
  Array m = empty({10, 10}, f32, try_gpu()), x = empty({10}, f32, try_gpu());
  m.normal_(random::key(0, try_gpu()));
  x.fill_(1.0);
  Array q = matmul(m, x);
  std::cout << q << '\n';
}

static void mixedTypesAndDevices() {
  heading("Mixed types and devices");
  Array x = ones({3}), y = ones({3}, f64), z = ones({3}, f32, try_gpu());
  documents::printError([&] { x + y; });
  documents::printError([&] { x + z; });

  heading("Copies between types and devices");
  Array target = empty({3}, f64, try_gpu());
  std::cout << target.copy_(x).is(target) << '\n';
  std::cout << target << '\n';
  std::cout << x.to(try_gpu()) + z << '\n';
}

namespace {

/// A linear layer that prints the size and device of its input.
struct Dummy {
  Array weight, bias;

  Dummy to(const Device &device) const { return {weight.to(device), bias.to(device)}; }
  Array forward(const Array &x) const {
    std::cout << "Dummy.forward [" << x.size(0) << ", " << x.size(1) << "] " << x.device() << '\n';
    return linear(x, weight, bias);
  }
};

} // namespace

/// nn.DataParallel: splits the rows, copies the module to each device, and joins the results on the first one.
static Array dataParallel(const Dummy &module, const Array &x, const std::vector<Device> &devices) {
  std::vector<Array> results;
  for (const Array &part : split(x, devices, {.even_split = false}))
    results.push_back(module.to(part.device()).forward(part).to(devices[0]));
  return cat(results);
}

static void modules() {
  Array keys = random::split(random::key(1), 3);
  Array x = random::normal(keys[{0}], {50, 10});
  Dummy m{random::uniform(keys[{1}], {5, 10}, -0.3, 0.3), random::uniform(keys[{2}], {5}, -0.3, 0.3)};
  heading("On CPU");
  Array expected = m.forward(x);
  x = x.to(try_gpu());
  m = m.to(try_gpu());
  heading("On GPU w/o data parallelism");
  m.forward(x);
  heading("On GPU w/ data parallelism");
  Array y = dataParallel(m, x, try_all_gpus());
  std::cout << "[" << y.size(0) << ", " << y.size(1) << "] " << y.device()
            << (allclose(y.cpu(), expected) ? ", as on the CPU\n" : ", not as on the CPU\n");

  heading("Gradients");
  m.weight.attach_grad();
  {
    auto tape = record();
    square(dataParallel(m, x, try_all_gpus())).mean().backward();
  }
  std::cout << m.weight.grad() << '\n';
}

static void slides() {
  std::cout << std::boolalpha;
  arraysLikeOthers();
  elementsInPlace();
  mixedTypesAndDevices();
  modules();
}

int main(int argc, char **argv) {
  return documents::run(argc, argv, "slides", "Runs the code of the slides \"Using GPUs\".", slides);
}

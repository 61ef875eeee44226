// Arrays on the abacus: a product and a ReLU, and an op that it lacks.
#include <iostream>
#include <sluice/array.h>

using namespace sluice;

int main() {
  set_devices("cpu,abacus:0");
  Array x = array({{1.f, 2.f}, {3.f, 1.f}}, gpu()), w = array({{2.f, 4.f}, {2.f, -5.f}}, gpu());
  std::cout << relu(matmul(x, w)) + array({{0.f, 0.f}, {0.f, 5.f}}, gpu()) << '\n';
  try {
    exp(x);
  } catch (const Error &error) {
    std::cout << error.message() << '\n';
  }
}

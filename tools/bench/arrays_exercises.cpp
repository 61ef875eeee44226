// Exercises of the chapter "GPUs" of Dive into Deep Learning, with arrays: the matrix size from which an accelerator is
// faster; 1,000 products whose norm is read each time or at the end; two products on two devices at once. Also measures
// the bandwidth of copies. A row for each device.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "sluice/array.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using namespace sluice;

namespace {

/// Milliseconds, the median of several rounds after one that warms up.
double timeOf(const std::function<void()> &body, int rounds = 5) {
  std::vector<double> times;
  for (int i = 0; i <= rounds; ++i) {
    auto start = std::chrono::steady_clock::now();
    body();
    wait_all();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin() + 1, times.end());
  return times[static_cast<size_t>(1 + rounds / 2)];
}

std::vector<Device> allDevices() {
  std::vector<Device> devices{cpu()};
  for (int i = 0; i < gpu_count(); ++i)
    devices.push_back(gpu(i));
  return devices;
}

void measureSizes(std::int64_t largest) {
  std::printf("products of two n x n matrices, ms\n%8s", "n");
  for (const Device &device : allDevices())
    std::printf(" %10s", device.str().c_str());
  std::printf("\n");
  std::int64_t crossover = 0;
  for (std::int64_t n = 16; n <= largest; n *= 2) {
    std::printf("%8lld", static_cast<long long>(n));
    std::vector<double> times;
    for (const Device &device : allDevices()) {
      Array a = random::uniform(random::key(1, device), {n, n}), b = a + 1.0;
      times.push_back(timeOf([&] { Array c = matmul(a, b); }));
      std::printf(" %10.4f", times.back());
    }
    std::printf("\n");
    bool isFaster = times.size() > 1 && times[1] < times[0];
    crossover = !isFaster ? 0 : crossover == 0 ? n : crossover;
  }
  if (crossover > 0)
    std::printf("gpu(0) is faster from n = %lld on\n", static_cast<long long>(crossover));
  else if (gpu_count() > 0)
    std::printf("gpu(0) is slower at all sizes\n");
}

/// Fails if the norms of the two variants differ.
bool measureLogs(int products) {
  bool isRight = true;
  std::printf("%d products of 100 x 100 matrices, ms\n%8s %16s %16s %12s\n", products, "device", "read each time",
              "read at the end", "no log");
  for (const Device &device : allDevices()) {
    Array m = random::uniform(random::key(2, device), {100, 100}, -0.1, 0.1), other = m.t();
    std::vector<double> read;
    std::vector<float> kept;
    double each = timeOf(
        [&] {
          read.clear();
          for (int i = 0; i < products; ++i)
            read.push_back(matmul(m, other).norm().item());
        },
        3);
    double last = timeOf(
        [&] {
          std::vector<Array> norms;
          for (int i = 0; i < products; ++i)
            norms.push_back(matmul(m, other).norm());
          std::vector<Array> joined; // stack in parts: a function of 1,000 operands compiles slowly
          for (size_t i = 0; i < norms.size(); i += 50)
            joined.push_back(stack(std::vector<Array>(norms.begin() + std::ptrdiff_t(i),
                                                      norms.begin() + std::ptrdiff_t(std::min(i + 50, norms.size())))));
          kept = cat(joined).to_vector<float>();
        },
        3);
    double none = timeOf(
        [&] {
          for (int i = 0; i < products; ++i)
            Array product = matmul(m, other);
        },
        3);
    std::printf("%8s %16.2f %16.2f %12.2f\n", device.str().c_str(), each, last, none);
    Array product = matmul(m, other);
    double byTrace = std::sqrt(trace(matmul(product, product.t())).item());
    isRight &= kept == std::vector<float>(read.begin(), read.end()) && std::abs(byTrace - read[0]) <= 1e-4 * read[0];
  }
  return isRight;
}

void measureTwoDevices(std::int64_t n) {
  if (gpu_count() < 2)
    return;
  Array a = random::uniform(random::key(3, gpu(0)), {n, n}), b = a.to(gpu(1));
  double sequence = timeOf([&] { Array first = matmul(a, a), second = matmul(a, a); });
  double together = timeOf([&] { Array first = matmul(a, a), second = matmul(b, b); });
  std::printf("two products of n = %lld: %.3f ms on gpu(0), %.3f ms on gpu(0) and gpu(1) at once: %.2fx\n",
              static_cast<long long>(n), sequence, together, sequence / together);
}

void measureBandwidth(std::int64_t megabytes) {
  std::int64_t elements = megabytes * 250000;
  for (int i = 0; i < gpu_count(); ++i) {
    Array host = ones({elements}), device = host.to(gpu(i));
    double up = timeOf([&] { Array there = host.to(gpu(i)); });
    double down = timeOf([&] { Array here = device.cpu(); });
    double inside = timeOf([&] { Array copy = device.copy_to(gpu(i)); });
    auto rate = [&](double ms) { return double(megabytes) / ms; };
    std::printf("gpu(%d): %.1f GB/s from the host, %.1f GB/s to it, %.1f GB/s within\n", i, rate(up), rate(down),
                2 * rate(inside));
  }
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures exercises of Dive into Deep Learning with arrays. A benchmark: it has no pass criterion, but "
               "fails if norms differ. Times of virtual accelerators are those of the host that computes for them.",
               "arrays_exercises");
  sluice::help::setHelp(app);
  std::string devices = "cpu";
  std::int64_t largest = 1024, megabytes = 256;
  int products = 1000;
  app.add_option("--devices", devices, "Devices, e.g. cpu,cuda:0 (default: cpu)")->type_name("LIST");
  app.add_option("--largest", largest, "Largest matrix size n (default: 1024)")
      ->type_name("N")
      ->check(sluice::help::wholeNumber(16, 100'000));
  app.add_option("--products", products, "Number of products (default: 1000)")
      ->type_name("N")
      ->check(sluice::help::wholeNumber(1, 1'000'000));
  app.add_option("--megabytes", megabytes, "Size of each copy in MB (default: 256)")
      ->type_name("MB")
      ->check(sluice::help::wholeNumber(1, 100'000));
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  set_devices(devices);
  measureSizes(largest);
  bool isRight = measureLogs(products);
  measureTwoDevices(largest);
  measureBandwidth(megabytes);
  if (!isRight)
    std::fprintf(stderr, "arrays_exercises: the norms differ\n");
  return isRight ? 0 : 1;
}

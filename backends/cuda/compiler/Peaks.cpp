#include "backends/cuda/compiler/Peaks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace sluice::cuda {

namespace {

struct Published {
  const char *architecture;
  int number; ///< 90 of "sm_90"
  double f32, tf32, halves, memoryBandwidth;
};

} // namespace

// Operations and bytes per second: dense products, at boost clocks. If several devices have an architecture, the one
// with the slowest memory.
static constexpr Published kPublished[] = {
    {"sm_80", 80, 19.5e12, 156e12, 312e12, 2.04e12},   // A100 80GB SXM: "NVIDIA A100 Tensor Core GPU", data sheet
    {"sm_90", 90, 67e12, 494.7e12, 989.4e12, 3.35e12}, // H100 SXM5: "NVIDIA H100 Tensor Core GPU", data sheet
    {"sm_100", 100, 75e12, 1100e12, 2250e12, 8.0e12},  // B200 in HGX: "NVIDIA Blackwell Architecture", technical brief
};

static const Published *publishedOf(llvm::StringRef architecture) {
  int number = 0;
  if (architecture.drop_front(architecture.find('_') + 1).consumeInteger(10, number))
    return nullptr;
  const auto *found = llvm::find_if(kPublished, [&](const Published &its) { return its.number == number; });
  return found == std::end(kPublished) ? nullptr : found;
}

std::vector<sluice_peak> publishedPeaks(llvm::ArrayRef<std::string> architectures) {
  std::vector<sluice_peak> peaks;
  auto isKnown = [&](const Published &its) {
    return llvm::any_of(peaks, [&](const sluice_peak &peak) { return peak.architecture == its.architecture; });
  };
  for (const std::string &architecture : architectures)
    if (const Published *its = publishedOf(architecture); its && !isKnown(*its))
      for (auto [ending, flops] :
           {std::pair("", its->f32), {kTf32Ending, its->tf32}, {kF16Ending, its->halves}, {kBf16Ending, its->halves}})
        peaks.push_back({its->architecture, its->number / 10, its->number % 10, ending, flops, its->memoryBandwidth});
  return peaks;
}

} // namespace sluice::cuda

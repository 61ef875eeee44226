// The names of devices in messages and reports. Plans and IR call the first accelerator "acc0". The graph API calls it
// gpu(0), and `--devices` lists it as, for example, sim:0.
#pragma once

#include <string>
#include <string_view>

namespace sluice::runtime {

/// "gpu(0)" for "acc0", "gpu(0).in" for the queue "acc0.in". Returns other names unchanged.
std::string shownDevice(std::string_view name);
/// "gpu(0) (sim:0)" for the device "acc0" with the spelling "sim:0". The host is "cpu", without its spelling.
std::string shownDevice(std::string_view name, std::string_view spelling);

} // namespace sluice::runtime

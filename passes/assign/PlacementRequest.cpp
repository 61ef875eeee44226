#include "passes/assign/PlacementRequest.h"

#include "passes/Obstacle.h"
#include "passes/analysis/Quantity.h"
#include "llvm/ADT/StringExtras.h"

namespace sluice::passes {

/// The devices of one item of the list: "sim:0" and "sim:1" for "sim:0-1", "sim:0" for "sim". A wrong item stays
/// unchanged, and is an error of the target.
static std::vector<std::string> devicesIn(llvm::StringRef item) {
  auto target = ir::Target::parse(item);
  if (!target) {
    llvm::consumeError(target.takeError());
    return {item.str()};
  }
  std::vector<std::string> devices;
  for (const ir::TargetDevice &device : llvm::drop_begin(target->devices()))
    devices.push_back(device.spelling());
  return devices.empty() ? std::vector{target->devices().front().spelling()} : devices;
}

llvm::Expected<std::string> takeCaps(llvm::StringRef devices, PlacementRequest &request) {
  llvm::SmallVector<llvm::StringRef> parts;
  devices.split(parts, ',');
  for (llvm::StringRef &part : parts) {
    auto [device, cap] = part.split('=');
    if (!part.contains('='))
      continue;
    std::optional<double> bytes = parseBytes(cap);
    if (!bytes)
      return refuse(Obstacle::Usage,
                    "'" + part + "': the memory of " + device +
                        " is no positive number of bytes with a unit, such as 16GB or 512MiB, or too large");
    for (const std::string &one : devicesIn(device))
      request.caps[one] = int64_t(*bytes);
    part = device;
  }
  return llvm::join(parts, ",");
}

llvm::Expected<GivenLink> parseLink(llvm::StringRef text) {
  auto [device, figures] = text.split('=');
  auto [rate, latency] = figures.split(',');
  GivenLink link;
  link.device = device.str();
  auto wrong = [&](const llvm::Twine &what) {
    return refuse(Obstacle::Usage, "--link: '" + text + "': " + what + "; a link is written as sim:0=12GB/s,5us");
  };
  if (device.empty() || figures.empty())
    return wrong("no device or no speed");
  std::optional<double> bytesPerSecond = parseBytesPerSecond(rate);
  if (!bytesPerSecond)
    return wrong("'" + rate + "' is no positive number of bytes a second with a unit, or too large");
  link.bytesPerSecond = *bytesPerSecond;
  if (!latency.empty() && !(link.latency = parseSeconds(latency)))
    return wrong("'" + latency + "' is no time with a unit, or too long");
  if (latency.empty() && figures.contains(','))
    return wrong("the latency is missing");
  return link;
}

llvm::Expected<PlacementRequest> placementRequestOf(const CompileOptions &options) {
  PlacementRequest request;
  request.chooses = !options.placement.empty();
  if (options.placement != "auto")
    request.file = options.placement;
  request.entry = options.place_entry;
  for (const std::string &text : options.links) {
    auto link = parseLink(text);
    if (!link)
      return link.takeError();
    if (llvm::any_of(request.links, [&](const GivenLink &known) { return known.device == link->device; }))
      return refuse(Obstacle::Usage, "--link: the link of " + link->device + " is given twice");
    request.links.push_back(std::move(*link));
  }
  return request;
}

} // namespace sluice::passes

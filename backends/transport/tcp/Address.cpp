#include "backends/transport/tcp/Address.h"

#include "backends/transport/Fail.h"

#include <charconv>

namespace sluice::transport {

std::string Address::text() const {
  bool isNumber = host.find(':') != std::string::npos; // an IPv6 address
  return (isNumber ? "[" + host + "]:" : host + ":") + std::to_string(port);
}

Address addressOf(const std::string &text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    fail(SLUICE_USAGE, "the address '", text, "' is not HOST:PORT");
  Address address{text.substr(0, colon), 0};
  if (address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  auto [at, error] = std::from_chars(begin, end, address.port);
  if (error != std::errc() || at != end || address.port < 1 || address.port > 65535)
    fail(SLUICE_USAGE, "the address '", text, "' has no port from 1 to 65535");
  return address;
}

} // namespace sluice::transport

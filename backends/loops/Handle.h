// An opaque name for something that an emitter has emitted.
#pragma once

namespace sluice::loops {

template <typename Tag> class Handle {
public:
  Handle() = default;
  explicit Handle(const void *opaque) : opaque(opaque) {}
  explicit operator bool() const { return opaque; }
  const void *get() const { return opaque; }

private:
  const void *opaque = nullptr;
};

using Count = Handle<struct CountTag>;     // a 64-bit integer, the same in all lanes
using Element = Handle<struct ElementTag>; // one value per lane

} // namespace sluice::loops

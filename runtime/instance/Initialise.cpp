#include "runtime/instance/Initialise.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <span>

namespace sluice::runtime {

void initialise(Instance &instance, uint64_t seed) {
  const Entry *init = instance.plan().findEntry("init");
  if (!init)
    return;
  const int32_t key[2] = {static_cast<int32_t>(seed >> 32), static_cast<int32_t>(seed)};
  for (const Value &input : init->inputs) {
    if (input.dtype != DType::i32 || input.shape != Shape{2})
      failInvalid(concat("entry point 'init' has an input ", quote(input.name), " of type ",
                         typeText(input.dtype, input.shape), ", expected a key i32[2]"));
    instance.setInput(input, std::as_bytes(std::span(key)), 1);
  }
  instance.run(*init, 1);
}

} // namespace sluice::runtime

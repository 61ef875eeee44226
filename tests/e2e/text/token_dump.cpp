// Prints the tokens of texts: token_dump TOKENIZER TEXT... prints a line of numbers for each file. On failure it prints
// the error and exits with its code.
#include "runtime/base/Status.h"
#include "runtime/data/text/Bpe.h"
#include "runtime/io/File.h"

#include <cstdio>

using namespace sluice::runtime;

int main(int argc, char **argv) {
  Status status = guarded([&] {
    Bpe bpe(argv[1]);
    for (int i = 2; i < argc; ++i) {
      Bytes text = readFile(argv[i]);
      for (int32_t token : bpe.encode({reinterpret_cast<const char *>(text.data()), text.size()}, argv[i]))
        std::printf("%d ", token);
      std::printf("\n");
    }
  });
  std::fprintf(stderr, "%s\n", status.message.c_str());
  return static_cast<int>(status.code);
}

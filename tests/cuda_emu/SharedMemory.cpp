#include "tests/cuda_emu/SharedMemory.h"

#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <elf.h>

namespace sluice::test {

/// The function that a static variable is in; empty for other symbols. Its mangled name is `_ZZ`, the function's, and its own.
static std::string functionOf(const char *symbol) {
  if (std::strncmp(symbol, "_ZZ", 3) != 0)
    return "";
  char *text = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
  std::string name = text ? text : "";
  std::free(text);
  size_t end = name.rfind("::");
  return end == std::string::npos ? "" : name.substr(0, end);
}

std::map<std::string, size_t> sharedBytes(const std::string &object) {
  std::map<std::string, size_t> bytes;
  auto at = [&](size_t offset) { return object.data() + offset; };
  Elf64_Ehdr head;
  std::memcpy(&head, at(0), sizeof head);
  auto section = [&](size_t number) {
    Elf64_Shdr found;
    std::memcpy(&found, at(head.e_shoff + number * head.e_shentsize), sizeof found);
    return found;
  };
  for (size_t number = 0; number < head.e_shnum; ++number) {
    Elf64_Shdr table = section(number);
    if (table.sh_type != SHT_SYMTAB)
      continue;
    const char *names = at(section(table.sh_link).sh_offset);
    for (size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, at(table.sh_offset + i * sizeof symbol), sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT)
        if (std::string function = functionOf(names + symbol.st_name); !function.empty())
          bytes[function] += symbol.st_size;
    }
  }
  return bytes;
}

} // namespace sluice::test

#include "passes/backend/KernelKey.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

namespace sluice::passes {

namespace {

/// Lists and texts are preceded by their lengths, so that different views never write the same bytes.
class Digest {
public:
  void add(uint64_t number) { hash.update(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(&number), sizeof number)); }

  void add(llvm::StringRef text) {
    add(text.size());
    hash.update(text);
  }

  template <typename T> void addList(const T *list, size_t count) {
    add(count);
    hash.update(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(list), count * sizeof(T)));
  }

  void add(const sluice_type_view &type) {
    add(type.dtype);
    addList(type.shape, type.rank);
    add(type.num_layout);
    for (const sluice_layout_dim &dim : llvm::ArrayRef(type.layout, type.num_layout)) {
      add(dim.dimension);
      add(dim.part);
      add(uint64_t(dim.tile));
    }
  }

  void add(const sluice_attribute_view &attribute) {
    add(llvm::StringRef(attribute.name));
    add(attribute.kind);
    addList(attribute.integers, attribute.integers ? attribute.count : 0);
    addList(attribute.reals, attribute.reals ? attribute.count : 0);
    add(llvm::StringRef(attribute.word ? attribute.word : ""));
    add(attribute.dtype);
  }

  void add(const sluice_op_view &op) {
    add(llvm::StringRef(op.name));
    addList(op.operands, op.num_operands);
    add(op.num_results);
    add(op.num_attributes);
    for (size_t number = 0; number < op.num_attributes; ++number)
      add(*sluice_op_attribute_at(&op, number));
  }

  void add(const sluice_kernel_view &kernel) {
    add(kernel.num_operands);
    add(kernel.num_values);
    for (size_t number = 0; number < kernel.num_values; ++number)
      add(*sluice_kernel_value_at(&kernel, number));
    add(kernel.num_ops);
    for (size_t number = 0; number < kernel.num_ops; ++number)
      add(*sluice_kernel_op_at(&kernel, number));
    addList(kernel.results, kernel.num_results);
  }

  std::string finish() { return llvm::toStringRef(hash.final()).str(); }

private:
  llvm::BLAKE3 hash;
};

} // namespace

KernelKey keyOf(const sluice_kernel_view &kernel, llvm::StringRef target, llvm::StringRef kind) {
  constexpr size_t kBytesInSymbol = 8;
  Digest digest;
  digest.add(target);
  digest.add(kernel);
  KernelKey key;
  key.digest = digest.finish();
  std::string digits = llvm::toHex(llvm::StringRef(key.digest).take_front(kBytesInSymbol), /*LowerCase=*/true);
  key.symbol = (kind + "_" + digits).str();
  return key;
}

} // namespace sluice::passes

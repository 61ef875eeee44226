// Strict reading of objects of JSON that people write: what is missing, wrong or unknown is an error that names the file,
// the field and the value.
#pragma once

#include "runtime/base/Json.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace sluice::compiler {

/// What is wrong with a file; the first fault is kept.
class JsonFaults {
public:
  explicit JsonFaults(std::string path) : path(std::move(path)) {}

  void add(const llvm::Twine &what) {
    if (first.empty())
      first = what.str();
  }
  bool any() const { return !first.empty(); }
  /// Success if there was no fault, else an error of kind Invalid.
  llvm::Error take() const;

private:
  std::string path, first;
};

/// The fields of one object. Who reads a field says what it must be; after a fault, values mean nothing.
class JsonFields {
public:
  /// `name` is where the object is in its file: "device", "device.measured[0]"; empty for the file's own.
  JsonFields(const runtime::Json &value, std::string name, JsonFaults &faults);

  bool has(llvm::StringRef field) { return find(field) != nullptr; }
  std::string text(llvm::StringRef field);
  /// One of `words`; the first of them if the field is absent and may be.
  std::string word(llvm::StringRef field, llvm::ArrayRef<llvm::StringRef> words, bool isRequired = true);
  int64_t integer(llvm::StringRef field, int64_t least, int64_t most);
  double number(llvm::StringRef field, double least, double most);
  /// With a unit: "25MiB", "300GB/s", "5us".
  double bytes(llvm::StringRef field);
  double bytesPerSecond(llvm::StringRef field);
  double seconds(llvm::StringRef field);
  /// What is in an object or in each element of a list; an absent list is empty.
  void object(llvm::StringRef field, llvm::function_ref<void(JsonFields &)> read);
  void list(llvm::StringRef field, llvm::function_ref<void(JsonFields &)> read);
  /// An object of texts.
  std::vector<std::pair<std::string, std::string>> texts(llvm::StringRef field);
  /// Faults what nobody has asked for.
  void finish();
  /// For rules that are about more than one field.
  void fault(llvm::StringRef field, const llvm::Twine &what);

private:
  const runtime::Json *find(llvm::StringRef field);
  /// The value of a required field, or null after a fault.
  const runtime::Json *need(llvm::StringRef field);
  std::string nameOf(llvm::StringRef field) const;
  double quantity(llvm::StringRef field, std::optional<double> (*parse)(llvm::StringRef), llvm::StringRef what);

  const runtime::Json *object_; ///< null if the value is no object
  std::string name;
  JsonFaults &faults;
  std::vector<llvm::StringRef> known; ///< fields that were asked for
};

} // namespace sluice::compiler

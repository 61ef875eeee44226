// Strict reading of JSON objects written by users: missing, invalid and unknown fields are errors that name the file,
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

/// The errors in a file; the first one is kept.
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

/// The fields of one object. The reader of a field states its constraints; after a fault, values are meaningless.
class JsonFields {
public:
  /// `name` is the path of the object in its file: "device", "device.measured[0]"; empty for the top-level object.
  JsonFields(const runtime::Json &value, std::string name, JsonFaults &faults);

  bool has(llvm::StringRef field) { return find(field) != nullptr; }
  std::string text(llvm::StringRef field);
  /// One of `words`; if the field is optional and absent, the first one.
  std::string word(llvm::StringRef field, llvm::ArrayRef<llvm::StringRef> words, bool isRequired = true);
  int64_t integer(llvm::StringRef field, int64_t least, int64_t most);
  double number(llvm::StringRef field, double least, double most);
  /// With a unit: "25MiB", "300GB/s", "5us".
  double bytes(llvm::StringRef field);
  double bytesPerSecond(llvm::StringRef field);
  double seconds(llvm::StringRef field);
  /// Reads an object or each element of a list; an absent list is empty.
  void object(llvm::StringRef field, llvm::function_ref<void(JsonFields &)> read);
  void list(llvm::StringRef field, llvm::function_ref<void(JsonFields &)> read);
  /// An object of texts.
  std::vector<std::pair<std::string, std::string>> texts(llvm::StringRef field);
  /// Reports fields that were not read.
  void finish();
  /// For constraints on several fields.
  void fault(llvm::StringRef field, const llvm::Twine &what);

private:
  const runtime::Json *find(llvm::StringRef field);
  /// The value of a required field, or null after a fault.
  const runtime::Json *need(llvm::StringRef field);
  std::string nameOf(llvm::StringRef field) const;
  double quantity(llvm::StringRef field, std::optional<double> (*parse)(llvm::StringRef), llvm::StringRef what);

  const runtime::Json *object_; ///< null if the value is not an object
  std::string name;
  JsonFaults &faults;
  std::vector<llvm::StringRef> known; ///< fields that were read
};

} // namespace sluice::compiler

// The values of an ONNX graph during import: known elements, sizes that depend on the number of rows, or tensors of the
// graph under construction.
#pragma once

#include "frontend/onnx/file/Model.h"
#include "frontend/onnx/import/Known.h"
#include "sluice/tensor.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace sluice::onnx {

/// A number that may depend on the rows of a call: constant + rows * (number of rows). The batch is {0, 1}.
struct Size {
  std::int64_t constant = 0, rows = 0;

  bool isKnown() const { return rows == 0; }
  bool operator==(const Size &) const = default;
};

/// For messages: "16", "rows*2 + 1".
std::string textOf(const Size &size);

/// An i64 scalar or vector with elements that depend on the number of rows.
struct Sizes {
  bool isScalar = false;
  std::vector<Size> elements;
};

/// The dimensions of a tensor.
std::vector<Size> shapeOf(const Tensor &tensor);

struct Origin;
struct Value;

/// A list of values, whose length is known when a model is imported.
struct Sequence {
  std::vector<std::shared_ptr<Value>> elements;
};

/// A value that nodes refer to by its name.
struct Value {
  /// Lost: a node that cannot be imported, or one that depends on it, computes the value.
  struct Lost {};
  std::variant<Lost, Known, Sizes, Tensor, Sequence> content;
  ElementType type = ElementType::undefined; ///< as the file declares or computes it; graphs hold i8 as i32
  std::string_view name;                     ///< in the file
  bool isWeight = false;                     ///< an initializer, or computed from initializers alone
  bool isReadOnce = false;                   ///< by one node, and as no output
  std::shared_ptr<const Origin> origin;      ///< of a tensor: the node that computes it; null if it is unknown

  /// The form of a known value as a tensor, once it is made: a parameter or a constant.
  Tensor made;

  const Known *known() const { return std::get_if<Known>(&content); }
  const Sizes *sizes() const { return std::get_if<Sizes>(&content); }
  const Tensor *tensor() const { return std::get_if<Tensor>(&content); }
  const Sequence *sequence() const { return std::get_if<Sequence>(&content); }
  bool isLost() const { return std::holds_alternative<Lost>(content); }
  /// Of every value but lost ones and sequences.
  std::vector<Size> shape() const;
};

using ValuePtr = std::shared_ptr<Value>;

/// The node that computes a value, for the recognition of layers.
struct Origin {
  file::Node node;
  std::vector<ValuePtr> operands;
  std::int64_t opset = 0;
};

ValuePtr valueOf(Known known);
ValuePtr valueOf(Tensor tensor, std::optional<ElementType> type = {});
/// A known value if no element depends on rows.
ValuePtr valueOf(Sizes sizes);
ValuePtr valueOf(Sequence sequence);
ValuePtr lostValue();

} // namespace sluice::onnx

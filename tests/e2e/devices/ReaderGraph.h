// Graphs in which one value is read twice: at its own indices, and at others.
#pragma once

#include <optional>
#include <sluice/sluice.h>
#include <string>
#include <vector>

namespace sluice::test {

/// How the rows of a graph are declared.
enum class RowKind {
  Batch,  ///< a batch dimension
  Static, ///< a constant number of rows
  Merged, ///< a batch dimension merged with the dimension after it
};

/// The graph in which roots and readers are built, and their operands.
struct ReaderContext {
  Graph &graph;
  nn::Module &net; ///< the module of their parameters
  DType dtype;
  RowKind kind;
  Tensor features;    ///< [rows, terms], at least two terms
  Tensor images;      ///< [rows, channels, 3, 3], at least two channels
  Tensor positions;   ///< [rows, at least 3], from -1 to 1; indices computed from them agree on all devices
  Tensor start;       ///< a scalar, 0
  int parameters = 0; ///< the number of parameters so far

  Tensor parameter(const Shape &shape) {
    return net.parameter("w" + std::to_string(parameters++), shape, init::uniform(-0.9, 0.9));
  }
};

/// The value of a root, [rows, columns] or [rows, columns, 3, 3].
Tensor rootValue(ReaderContext &context, const std::string &root, int64_t columns);
/// Whether the root reads images.
bool readsImages(const std::string &root);
/// Reads `h` at its own indices and by `reader`, and combines both by the formula of `form`. Empty if `reader` cannot
/// read `h`.
std::optional<Tensor> readTwice(ReaderContext &context, const Tensor &h, const std::string &reader, int64_t columns,
                                int form);

/// Operations that produce a value [rows, columns], or [rows, columns, 3, 3].
std::vector<std::string> readerRoots();
/// Whether the root is computed as a sum of products, one tile of it at a time.
bool isProductRoot(const std::string &root);
/// Consumers that read such a value at other indices than its own.
std::vector<std::string> secondReaders();

/// A root's value and its second reader.
struct ReaderCase {
  std::string root, reader;
  int64_t columns;
  int form; ///< how both readers are combined; see kReaderForms
};

/// Combinations of both readers: `h + r`, `relu(h) - r / 2`, `tanh(h)` read twice, and so on.
inline constexpr int kReaderForms = 4;

/// A graph with an output for each case, in order: "y0", "y1", ...; "" where no case can be built for these rows. If
/// `trains`, it also trains the parameters of all cases by SGD. A case that cannot be built (no transposition of one
/// column, say) has no output.
std::string readerGraph(const std::vector<ReaderCase> &cases, DType dtype, RowKind rows, const std::string &devices,
                        bool trains);

/// The sizes of one call. Its inputs are "features" [rows, terms], or [rows, tokens, terms] if rows are merged;
/// "images" [rows, terms, height, width]; and "start", a scalar.
inline constexpr int64_t kReaderRows = 5, kReaderTerms = 5, kReaderTokens = 2, kReaderHeight = 3, kReaderWidth = 3;

} // namespace sluice::test

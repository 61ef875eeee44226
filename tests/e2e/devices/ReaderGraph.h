// Graphs in which one value is read twice: at its own indices, and at others.
#pragma once

#include "tests/e2e/Harness.h"
#include <sluice/dtype.h>
#include <string>
#include <vector>

namespace sluice::test {

/// How the rows of a graph are declared.
enum class RowKind {
  Batch,  ///< a batch dimension
  Static, ///< as many rows as a constant says
  Merged, ///< a batch dimension merged with the dimension after it
};

/// Operations that produce a value [rows, columns], or [rows, columns, 3, 3].
std::vector<std::string> readerRoots();
/// Whether the root is computed as a sum of products, one tile of it at a time.
bool isProductRoot(const std::string &root);
/// Consumers that read such a value at other indices than its own.
std::vector<std::string> secondReaders();

/// One value of a root, and what reads it a second time.
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

/// The rows of one call, and the inputs of a graph for them.
inline constexpr int64_t kReaderRows = 5;
Values readerInputs(const std::string &graph, RowKind rows);

} // namespace sluice::test

// Large exchanges between processes. Each rank owns a region of the elements. In a reduction, it receives the region's
// contributions from every other rank, piece by piece, adds them in ascending order of ranks, and sends the results to
// all. Gathered and broadcast data need no additions: they are results from the start.
//
// Messages between two ranks have a fixed order. Contributions run kDistance pieces ahead of results, so that few
// pieces wait to be added, and additions overlap with transfers.
#pragma once

#include "backends/exchange/Link.h"
#include "backends/exchange/Signature.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace sluice::exchange {

/// The order in which one rank sends another the pieces of its contribution, and of its results.
class Sequence {
public:
  Sequence(size_t contributions, size_t results) : contributions_(contributions), results_(results) {}

  struct Message {
    bool isResult;
    size_t piece;
  };
  bool isOver() const { return contributed_ == contributions_ && finished_ == results_; }
  Message next() const;
  void advance() { ++(next().isResult ? finished_ : contributed_); }

private:
  size_t contributions_, results_;
  size_t contributed_ = 0, finished_ = 0;
};

class Pieces {
public:
  /// `scratch` holds received contributions. It grows as required; its contents are undefined before and after.
  Pieces(const Link &link, int32_t rank, const Part &part, std::vector<std::byte> &scratch);

  /// Returns when the exchange has completed. Throws the transport's error, or a deadline error that names the late
  /// ranks.
  void run();

private:
  using Message = Sequence::Message;
  struct Move {
    sluice_transfer *transfer;
    Message message;
  };
  /// State per peer rank.
  struct Flow {
    int32_t rank;
    size_t firstBuffer; // number of the first buffer of its contributions, in `scratch`
    Sequence out, in;
    std::deque<Move> sends, receives;
    size_t sent = 0, received = 0; // contributions that have completed
  };
  /// A range of the elements of the exchange.
  struct Range {
    size_t first, count;
  };

  Range regionOf(int32_t rank) const;
  size_t piecesOf(int32_t rank) const;
  Range pieceOf(int32_t rank, size_t piece) const;
  Sequence sequence(int32_t from, int32_t to) const;

  std::byte *receivedAt(size_t element) const;
  const std::byte *source(const Flow &flow, Message message) const;
  std::byte *target(const Flow &flow, Message message) const;
  std::byte *buffer(const Flow &flow, size_t piece) const;

  void keepOwn() const;
  bool maySend(Message message) const;
  bool mayReceive(const Flow &flow, Message message) const;
  bool beginSends(Flow &flow);
  bool beginReceives(Flow &flow);
  bool finishMoves(Flow &flow);
  bool reduceNext();
  void reducePiece(size_t piece);
  bool isOver() const;
  [[noreturn]] void failLate() const;

  const Link &link_;
  int32_t rank_, size_;
  const Part &part_;
  const Signature &signature_;
  size_t element_; // bytes of one
  size_t pieceElements_;
  bool scatters_, gathers_; // ranks send contributions to the owners; owners send results to all
  std::vector<std::byte> &scratch_;
  std::vector<Flow> flows_;
  size_t toReduce_, reduced_ = 0; // pieces of this rank's region
};

} // namespace sluice::exchange

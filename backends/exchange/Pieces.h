// The large exchanges among processes. Each rank owns a part of what is reduced: it receives that part of every other rank,
// piece by piece, adds the pieces in ascending order of ranks, and sends the results to all. What is gathered or broadcast
// is a result from the beginning.
//
// Messages between two ranks come in a fixed order, in which results follow contributions at a distance; so pieces that
// wait to be added are few, and adding goes on while others move.
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
  /// `scratch` is made as large as it must be, and holds nothing before or after.
  Pieces(const Link &link, int32_t rank, const Part &part, std::vector<std::byte> &scratch);

  /// Returns when it is done. Throws what the transport says, and an error of a passed deadline with the late ranks.
  void run();

private:
  using Message = Sequence::Message;
  struct Move {
    sluice_transfer *transfer;
    Message message;
  };
  /// To and from one rank.
  struct Flow {
    int32_t rank;
    size_t slots; // where its contributions wait, in `scratch`
    Sequence out, in;
    std::deque<Move> sends, receives;
    size_t sent = 0, received = 0; // contributions
  };
  /// Elements of the whole.
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
  std::byte *slot(const Flow &flow, size_t piece) const;

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
  bool scatters_, gathers_; // ranks contribute to results of others; results go to all
  std::vector<std::byte> &scratch_;
  std::vector<Flow> flows_;
  size_t toReduce_, reduced_ = 0; // pieces
};

} // namespace sluice::exchange

#include "runtime/launch/ProcessGroup.h"

#include "runtime/base/Status.h"
#include "runtime/plugins/BackendTables.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace sluice::runtime {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

static constexpr size_t kMostAgreedBytes = size_t(16) << 20;

ProcessGroup::ProcessGroup(const sluice_transport_library &library, const ProcessGroupOptions &options)
    : library_(library), options_(options), exceptions_(std::uncaught_exceptions()) {
  sluice_transport_options wanted{sizeof wanted,
                                  options.rank,
                                  options.size,
                                  options.address.empty() ? nullptr : options_.address.c_str(),
                                  options_.secret.c_str(),
                                  options.deadline};
  sluice_status status = library.open(&wanted, &transport_);
  if (status != SLUICE_OK) {
    std::string reason = transport_ ? library.last_error(transport_) : "it gives no reason";
    if (transport_)
      library.close(transport_);
    throw Error(exitCodeOf(status), concat("transport ", quote(library.name), ": ", reason));
  }
  link_ = {sizeof link_, &library_, transport_, options.deadline};
}

ProcessGroup::~ProcessGroup() {
  if (std::uncaught_exceptions() > exceptions_ && !endsAlike_)
    abort();
  library_.close(transport_);
}

void ProcessGroup::check(sluice_status status, const std::string &what) const {
  if (status != SLUICE_OK)
    throw Error(exitCodeOf(status), concat(what, ": ", library_.last_error(transport_)));
}

//===- messages ---------------------------------------------------------------------------------------------------===//

ProcessGroup::Transfers ProcessGroup::withOthers(bool isSend, const Bytes &bytes) const {
  Transfers transfers;
  int end = isFirst() ? size() : 1;
  for (int other = isFirst() ? 1 : 0; other < end; ++other)
    transfers.push_back({isSend, other, bytes});
  return transfers;
}

/// Pauses between two polls. Other threads may need the processor, so a waiting thread yields at first. Then it sleeps,
/// from 50 us to 1 ms.
static void pauseFor(int turn) {
  constexpr int kYields = 64;
  if (turn < kYields)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(50 * std::min(turn - kYields + 1, 20)));
}

/// Rank 0 waits for all ranks and detects the late rank. The other ranks wait longer, to receive its report.
double ProcessGroup::patience() const {
  constexpr double kLonger = 1.25;
  return isFirst() ? options_.deadline : kLonger * options_.deadline;
}

void ProcessGroup::await(const std::string &what, Transfers &transfers) {
  for (Transfer &transfer : transfers)
    check(transfer.isSend
              ? library_.send(transport_, transfer.rank, transfer.bytes.data(), transfer.bytes.size(), &transfer.handle)
              : library_.receive(transport_, transfer.rank, transfer.bytes.data(), transfer.bytes.size(),
                                 &transfer.handle),
          what);
  Clock::time_point begin = Clock::now();
  for (int turn = 0;; ++turn) {
    const Transfer *late = nullptr;
    for (Transfer &transfer : transfers) {
      int done = transfer.isDone;
      if (!transfer.isDone)
        check(library_.test(transport_, transfer.handle, &done), what);
      transfer.isDone = done != 0;
      if (!transfer.isDone && !late)
        late = &transfer;
    }
    if (!late)
      return;
    if (std::chrono::duration<double>(Clock::now() - begin).count() >= patience())
      throw Error(ExitCode::deadline,
                  concat(what, ": rank ", late->rank, " did not come within ", fixedText(patience(), 1), " s"));
    pauseFor(turn);
  }
}

void ProcessGroup::move(const std::string &what, Transfers &transfers) {
  try {
    await(what, transfers);
  } catch (...) {
    failed_.push_back(std::move(transfers)); // the transport may still access the bytes, which keep their addresses
    throw;
  }
}

//===- calls of all ranks -----------------------------------------------------------------------------------------===//

void ProcessGroup::broadcast(const std::string &what, std::span<std::byte> bytes) {
  Transfers transfers = withOthers(/*isSend=*/isFirst(), {bytes.begin(), bytes.end()});
  move(what, transfers);
  if (!isFirst())
    std::copy(transfers.front().bytes.begin(), transfers.front().bytes.end(), bytes.begin());
}

std::vector<Bytes> ProcessGroup::gather(const std::string &what, std::span<const std::byte> own,
                                        const std::vector<size_t> &sizes) {
  if (!isFirst()) {
    Transfers transfers = withOthers(/*isSend=*/true, {own.begin(), own.end()});
    move(what, transfers);
    return {};
  }
  Transfers transfers = withOthers(/*isSend=*/false, {});
  for (Transfer &transfer : transfers)
    transfer.bytes.resize(sizes[static_cast<size_t>(transfer.rank)]);
  move(what, transfers);
  std::vector<Bytes> all = {{own.begin(), own.end()}};
  for (Transfer &transfer : transfers)
    all.push_back(std::move(transfer.bytes));
  return all;
}

void ProcessGroup::meet(const std::string &what) {
  for (bool comes : {true, false}) { // to rank 0, and back
    Transfers transfers = withOthers(/*isSend=*/isFirst() != comes, {});
    move(what, transfers);
  }
}

std::string ProcessGroup::spread(const std::string &what, std::string text) {
  uint64_t size = text.size();
  broadcast(what, std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  if (size > 0)
    broadcast(what, std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<Bytes> ProcessGroup::collect(const std::string &what, std::span<const std::byte> own) {
  uint64_t size = own.size();
  std::vector<size_t> sizes;
  for (const Bytes &one : gather(what, std::as_bytes(std::span(&size, 1)),
                                 std::vector<size_t>(static_cast<size_t>(this->size()), sizeof size))) {
    std::memcpy(&size, one.data(), sizeof size);
    if (size > kMostAgreedBytes)
      failInvalid(
          concat(what, ": rank ", sizes.size(), " sends ", size, " bytes, more than the limit of ", kMostAgreedBytes));
    sizes.push_back(size);
  }
  return gather(what, own, sizes);
}

//===- agreement --------------------------------------------------------------------------------------------------===//

static Bytes encodeLines(const std::vector<NamedText> &lines) {
  std::string text;
  for (const NamedText &line : lines)
    text.append(line.name).append(1, '\0').append(line.text).append(1, '\0');
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

static std::vector<NamedText> decodeLines(const Bytes &bytes) {
  std::vector<std::string> texts(1);
  for (std::byte byte : bytes)
    byte == std::byte{0} ? (void)texts.emplace_back() : texts.back().push_back(static_cast<char>(byte));
  std::vector<NamedText> lines;
  for (size_t i = 0; i + 1 < texts.size(); i += 2)
    lines.push_back({texts[i], texts[i + 1]});
  return lines;
}

/// "the seed is 3, and 4 in rank 0", or nothing.
static std::string firstDifference(const std::vector<NamedText> &first, const std::vector<NamedText> &other) {
  for (size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
    if (i >= other.size() || (i < first.size() && first[i].name != other[i].name))
      return concat("it lacks ", first[i].name, ", which rank 0 has");
    if (i >= first.size())
      return concat("it has ", other[i].name, ", which rank 0 lacks");
    if (first[i].text != other[i].text)
      return concat(first[i].name, " is ", other[i].text, ", and ", first[i].text, " in rank 0");
  }
  return "";
}

void ProcessGroup::agree(const std::string &what, const std::vector<NamedText> &lines) {
  std::vector<Bytes> told = collect(what, encodeLines(lines));
  std::string verdict;
  for (size_t rank = 1; rank < told.size() && verdict.empty(); ++rank)
    if (std::string difference = firstDifference(lines, decodeLines(told[rank])); !difference.empty())
      verdict = concat("rank ", rank, " differs from rank 0: ", difference);
  verdict = spread(what, std::move(verdict));
  if (verdict.empty())
    return;
  endAlike(what);
  failInvalid(verdict);
}

/// Throws an error that all ranks share. `verdict` is its exit code and its message: "4 there is no such device". No
/// effect if empty.
static void throwVerdict(const std::string &verdict) {
  if (!verdict.empty())
    throw Error(static_cast<ExitCode>(std::stoi(verdict)), verdict.substr(verdict.find(' ') + 1));
}

/// "rank 0 chose cpu,cuda:0; ranks 1, 2 chose cpu (cpu,cuda:0: no driver)", or nothing if all chose the same.
static std::string differentChoices(const std::vector<NamedText> &choices) {
  std::set<std::string> different;
  std::vector<std::pair<std::string, std::vector<std::string>>> told; // each choice with its reason, and its ranks
  for (size_t rank = 0; rank < choices.size(); ++rank) {
    const auto &[choice, why] = choices[rank];
    if (choice.empty())
      continue;
    different.insert(choice);
    std::string text = concat(choice, why.empty() ? "" : concat(" (", why, ")"));
    auto known = std::find_if(told.begin(), told.end(), [&](const auto &its) { return its.first == text; });
    if (known == told.end())
      known = told.insert(told.end(), {text, {}});
    known->second.push_back(std::to_string(rank));
  }
  std::string differences;
  for (const auto &[text, ranks] : told)
    differences +=
        concat(differences.empty() ? "" : "; ", ranks.size() > 1 ? "ranks " : "rank ", listed(ranks), " chose ", text);
  return different.size() > 1 ? differences : "";
}

void ProcessGroup::agreeOnChoice(const std::string &what, const std::string &choice, const std::string &why) {
  std::vector<NamedText> choices;
  for (const Bytes &bytes : collect(what, encodeLines({{choice, why}})))
    choices.push_back(decodeLines(bytes).front());
  bool isAbsent = std::any_of(choices.begin(), choices.end(), [](const NamedText &its) { return its.name == nothing; });
  std::string verdict = differentChoices(choices);
  if (!verdict.empty())
    verdict = concat(static_cast<int>(isAbsent ? ExitCode::unsupported : ExitCode::invalid), " ", what,
                     " is not the same in all processes: ", verdict);
  verdict = spread(what, std::move(verdict));
  if (!verdict.empty())
    endAlike(what);
  throwVerdict(verdict);
}

//===- outcomes ---------------------------------------------------------------------------------------------------===//

static const char *const kErrorLine = "error";

/// The verdict for the error of the first failed rank: "4 rank 1: device gpu(0) (cuda:1) is not there"; else empty.
static std::string firstError(const std::vector<std::vector<NamedText>> &told) {
  for (size_t rank = 0; rank < told.size(); ++rank)
    if (!told[rank].empty() && told[rank].front().name == kErrorLine) {
      const std::string &error = told[rank].front().text;
      size_t code = error.find(' ') + 1;
      return concat(error.substr(0, code), "rank ", rank, ": ", error.substr(code));
    }
  return "";
}

/// The verdict for the first claim that two ranks share; else empty.
static std::string firstConflict(const std::vector<std::vector<NamedText>> &told) {
  std::map<std::string, size_t> claimed; // the rank of each claim
  for (size_t rank = 0; rank < told.size(); ++rank)
    for (const NamedText &claim : told[rank])
      if (auto [owner, isFree] = claimed.try_emplace(claim.name, rank); !isFree)
        return concat(static_cast<int>(ExitCode::unsupported), " ranks ", owner->second, " and ", rank, " have one ",
                      claim.text, ": each needs its own");
  return "";
}

void ProcessGroup::settle(const std::string &what, const Status &own, const std::vector<NamedText> &claims) {
  std::vector<NamedText> lines = claims;
  if (!own.ok())
    lines = {{kErrorLine, concat(static_cast<int>(own.code), " ", own.message)}};
  std::string verdict;
  Status told = guarded([&] {
    std::vector<std::vector<NamedText>> all;
    for (const Bytes &bytes : collect(what, encodeLines(lines)))
      all.push_back(decodeLines(bytes));
    verdict = firstError(all);
    verdict = spread(what, verdict.empty() ? firstConflict(all) : verdict);
    if (!verdict.empty())
      endAlike(what);
  });
  if (!own.ok())
    throw Error(own.code, own.message);
  if (!told.ok())
    throw Error(told.code, told.message);
  throwVerdict(verdict);
}

std::string ProcessGroup::whoIsSilent() noexcept {
  constexpr double kPatience = 5; // seconds by which other ranks may reach the deadline later
  if (!failed_.empty())
    return "";
  // Rank 0 receives from all ranks, so it ends first and reports the silent rank.
  options_.deadline = std::min(options_.deadline, isFirst() ? kPatience : 2 * kPatience);
  Status status = guarded([&] { meet("a sign of life"); });
  return status.code == ExitCode::deadline ? status.message : "";
}

void ProcessGroup::endAlike(const std::string &what) {
  meet(what); // all ranks must receive the report before any rank exits
  endsAlike_ = true;
}

} // namespace sluice::runtime

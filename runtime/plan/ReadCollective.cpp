// Parses and checks collectives.
#include "runtime/base/Text.h"
#include "runtime/plan/ReadFields.h"

#include <algorithm>

namespace sluice::runtime {

/// With this limit, the bytes of all replicas' elements of any type are at most `mostBytes`.
static constexpr int64_t mostElements = mostBytes / 8 / mostReplicas;

static bool isExchanged(DType type) { return type != DType::u8 && type != DType::boolean; }

/// Parses `send` or `receive`: a buffer on the queue's device, with room for the operand or result.
static Buffer parseEnd(const JsonReader &json, const Plan &plan, const Queue &queue, int64_t bytes) {
  Buffer buffer = parseBuffer(json, plan);
  if (plan.deviceOf(buffer.slot) != queue.device)
    json.at("arena").fail(concat("is not on the device of the queue ", quote(queue.name)));
  if (buffer.bytes < bytes)
    json.at("bytes").fail(concat("is ", buffer.bytes, ", but the collective needs ", bytes));
  return buffer;
}

static void parseEnds(const JsonReader &json, const Plan &plan, const Queue &queue, Collective &into) {
  using Kind = Collective::Kind;
  int64_t part = into.partBytes(), all = into.bytesFor(plan.replicas);
  into.send = parseEnd(json.at("send"), plan, queue, into.kind == Kind::reduceScatter ? all : part);
  into.receive = parseEnd(json.at("receive"), plan, queue, into.kind == Kind::allGather ? all : part);
  into.send.access = Access::read;
  into.receive.access = Access::write;
  if (plan.arenas[into.receive.slot.arena].isConstant())
    json.at("receive").fail("a collective cannot write constants");
  if (into.isInPlace() && into.send.bytes != into.receive.bytes)
    json.at("receive").fail(
        concat("has ", into.receive.bytes, " bytes in the place of the ", into.send.bytes, " that are sent"));
  if (!into.isInPlace() && plan.overlap(into.send, into.receive))
    json.at("receive").fail("overlaps 'send', but is not in its place");
}

Collective parseCollective(const JsonReader &json, const Plan &plan, const Queue &queue) {
  if (plan.replicas == 1)
    json.fail("is for several replicas, but the plan has one");
  if (queue.device != 0 && queue.kind != QueueKind::communication)
    json.fail(concat("its queue ", quote(queue.name), " is not a communication queue"));
  Collective collective;
  collective.name = json.at("name").string();
  collective.source = optionalText(json, "source");
  collective.kind = parseEnum<Collective::Kind>(json.at("kind"), Collective::kindNames);
  if (plan.replicas == replicasOfLaunch && collective.isShared())
    json.at("kind").fail("needs the number of replicas, which the launch decides");
  if (json.has("reduction"))
    collective.reduction = parseEnum<Reduction>(json.at("reduction"), reductionNames);
  collective.dtype = parseDType(json.at("dtype"));
  if (!isExchanged(collective.dtype))
    json.at("dtype").fail(concat("is ", nameOf(collective.dtype), ", which is not exchanged"));
  collective.count = json.at("count").integer(0, mostElements);
  if (json.has("root"))
    collective.root = static_cast<int32_t>(json.at("root").integer(0, std::max<int64_t>(plan.replicas - 1, 0)));
  parseEnds(json, plan, queue, collective);
  return collective;
}

} // namespace sluice::runtime

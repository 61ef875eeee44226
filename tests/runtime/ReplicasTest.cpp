// Several replicas, each on a virtual accelerator: together they compute the result of the whole batch.
#include "AveragerRun.h"
#include "runtime/base/Status.h"
#include "sluice/runtime/api.h"

#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::runtime;
using test::AveragerRun;
using test::Json;

namespace {

/// The number of replicas, and the execution order of queues.
class ManyReplicas : public testing::TestWithParam<std::tuple<int, int>> {
protected:
  int replicas() const { return std::get<0>(GetParam()); }
  std::string settings() const { return "seed=" + std::to_string(std::get<1>(GetParam())); }
};

constexpr int64_t rowsOfCalls[] = {64, 64, 1, 2, 7, 33, 64, 4, 64};

template <typename Body> std::string messageOfUsage(Body body) {
  Status status = guarded(body);
  EXPECT_EQ(status.code, ExitCode::usage) << status.message;
  return status.message;
}

} // namespace

TEST_P(ManyReplicas, ComputeWhatTheWholeBatchGives) {
  AveragerRun run(replicas(), settings());
  for (int64_t rows : rowsOfCalls) {
    run.run(rows);
    EXPECT_EQ(run.loss(rows), run.expectedMean);
    EXPECT_EQ(run.rowsOut(rows), run.expectedRows);
    for (int replica = 0; replica < replicas(); ++replica) {
      EXPECT_EQ(run.state("weight", replica), run.expectedWeight);
      EXPECT_EQ(run.state("total", replica), run.expectedTotal);
    }
  }
}

/// No output is read between the calls, so that several calls are in flight.
TEST_P(ManyReplicas, NeedNotBeWaitedFor) {
  AveragerRun run(replicas(), settings());
  for (int i = 0; i < 20; ++i)
    for (int64_t rows : rowsOfCalls)
      run.run(rows);
  EXPECT_EQ(run.state("weight", replicas() - 1), run.expectedWeight);
  EXPECT_EQ(run.state("total"), run.expectedTotal);
}

TEST_P(ManyReplicas, CountWhatIsPredictedAndExecuted) {
  AveragerRun run(replicas(), settings());
  for (int64_t rows : rowsOfCalls)
    run.run(rows);
  Instance &instance = run.instance();
  instance.synchronize();
  CopyCount all;
  for (int replica = 0; replica < replicas(); ++replica) {
    Executor &executor = instance.executor(replica);
    EXPECT_EQ(executor.executedCopies(), executor.forecast().counts());
    EXPECT_EQ(byPair(executor.executedCopies()), byPair(executor.engineCopies()));
    all += byPair(executor.executedCopies())[{0, 1}];
  }
  CopyCount told;
  for (const PairCount &count : instance.copies())
    if (count.from == 0)
      told += count.count;
  EXPECT_EQ(told, all);
  EXPECT_EQ(all.bytes % 4, 0);
  std::vector<CollectiveReport> collectives = instance.collectives();
  ASSERT_EQ(collectives.size(), replicas() > 1 ? 1u : 0u);
  if (replicas() == 1)
    return;
  EXPECT_EQ(collectives[0].kind, Collective::Kind::allReduce);
  EXPECT_EQ(collectives[0].executed, (CollectiveCount{9, 72}));
  EXPECT_EQ(collectives[0].counted, (CollectiveCount{9, 72}));
}

INSTANTIATE_TEST_SUITE_P(Numbers, ManyReplicas, testing::Combine(testing::Values(1, 2, 3, 5), testing::Range(0, 4)),
                         [](const auto &info) {
                           return std::to_string(std::get<0>(info.param)) + "Seed" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(Replicas, HaveTheStatesThatAreSet) {
  AveragerRun run(3);
  double seven = 7, eight = 8;
  run.instance().setState(run.instance().state("weight"), std::as_bytes(std::span(&seven, 1)));
  run.instance().setState(run.instance().state("total"), std::as_bytes(std::span(&eight, 1)));
  for (int replica = 0; replica < 3; ++replica) {
    EXPECT_EQ(run.state("weight", replica), 7);
    EXPECT_EQ(run.state("total", replica), 8);
  }
}

TEST(Replicas, KnowTheirShareOfTheRows) {
  AveragerRun run(3);
  run.run(7);
  auto share = [&](const char *name, int64_t replica) {
    int64_t value = -1;
    run.instance().getState(run.instance().state(name), std::as_writable_bytes(std::span(&value, 1)), replica);
    return value;
  };
  EXPECT_EQ(share("global_rows", 2), 7);
  EXPECT_EQ(share("first_row", 0), 0);
  EXPECT_EQ(share("first_row", 2), 5);
  int64_t nine = 9;
  EXPECT_EQ(messageOfUsage([&] {
              run.instance().setState(run.instance().state("first_row"), std::as_bytes(std::span(&nine, 1)));
            }),
            "the state 'first_row' is set by the runtime before each call");
}

/// Only changed values are copied: the row count is written only when it changes.
TEST(Replicas, SetSharesOnlyWhenTheyChange) {
  AveragerRun run(2);
  for (int i = 0; i < 5; ++i)
    run.run(64);
  EXPECT_EQ(run.instance().executor(1).forecast().mirrorsRefreshed(), 2);
  run.run(63);
  EXPECT_EQ(run.instance().executor(1).forecast().mirrorsRefreshed(), 3); // first_row is still 32
  run.run(4);
  EXPECT_EQ(run.instance().executor(1).forecast().mirrorsRefreshed(), 5);
}

TEST(Replicas, HaveDevicesOfTheirOwn) {
  DeviceOptions options;
  options.list = "sim:5,sim:2";
  AveragerRun run(2, "seed=3", nullptr, options);
  run.run(9);
  EXPECT_EQ(run.loss(9), run.expectedMean);
  EXPECT_EQ(run.instance().executor(0).devices().textOf(1), "gpu(0) (sim:5)");
  EXPECT_EQ(run.instance().executor(1).devices().textOf(1), "gpu(0) (sim:2)");
}

TEST(Replicas, NameTheRowOfTheWholeCall) {
  AveragerRun run(3);
  std::vector<int32_t> x = run.batchOf(64);
  x[40] = 100;
  run.setBatch(x);
  Status status = guarded([&] { run.instance().run(run.step(), 64); });
  EXPECT_EQ(status.code, ExitCode::invalid);
  EXPECT_EQ(status.message, "input 'x', row 40: 100 is none of the 100 classes 0 to 99");
  run.run(64); // no change
  EXPECT_EQ(run.loss(64), run.expectedMean);
}

TEST(Replicas, RefuseRowsThatAreNotThoseOfTheInputs) {
  AveragerRun run(2);
  run.setBatch(run.batchOf(10));
  EXPECT_EQ(messageOfUsage([&] { run.instance().run(run.step(), 9); }),
            "input 'x' was set with 10 rows, and the call has 9");
  EXPECT_EQ(messageOfUsage([&] { run.instance().run(run.step(), 65); }),
            "a call of 'train_step' has 65 rows, outside [1, 64]");
}

TEST(Replicas, GiveEachAnAddressForItsInputs) {
  AveragerRun run(2);
  for (int replica = 0; replica < 2; ++replica) {
    auto *x = reinterpret_cast<int32_t *>(run.instance().inputAddress(run.step().inputs[0], replica));
    for (int i = 0; i < 3; ++i)
      x[i] = 10 * replica + i;
  }
  run.instance().run(run.step(), 5);
  EXPECT_EQ(run.rowsOut(5), (std::vector<int32_t>{0, 2, 4, 13, 15}));
}

TEST(Replicas, KeepOutputsOfManyCalls) {
  AveragerRun run(2);
  run.instance().keepOutputs(run.step(), {&run.step().outputs[0]});
  std::vector<double> expected;
  for (int64_t rows : rowsOfCalls) {
    run.run(rows);
    expected.push_back(run.expectedMean);
  }
  EXPECT_EQ(run.instance().takeOutputs(run.step()), expected);
}

/// The first replica waits after each of its actions, including the exchange, which the other replicas reach by
/// themselves.
TEST(Replicas, LetTheFirstBeWatched) {
  AveragerRun run(3);
  std::vector<size_t> seen;
  double mean = 0;
  const Buffer &loss = run.step().actions[test::note].launch()->buffers[2];
  run.instance().watch([&](const Entry &entry, size_t action) {
    seen.push_back(action);
    if (action == test::note)
      run.instance().readBuffer(entry, loss, std::as_writable_bytes(std::span(&mean, 1)));
  });
  run.run(50);
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(mean, run.expectedMean);
}

/// A collective on the host in addition to one on the accelerators: the maximum of a value that is equal everywhere.
TEST(Replicas, ExchangeOnTheHostToo) {
  Json plan = test::averagerPlan(3);
  Json &actions = plan["entries"][1]["actions"];
  Json largest = actions[test::reduce];
  Json loss = plan["entries"][1]["outputs"][0];
  for (const char *end : {"send", "receive"})
    largest["collective"][end] = {{"arena", loss["arena"]}, {"offset", loss["offset"]}, {"bytes", 8}};
  largest["collective"]["reduction"] = "max";
  largest["queues"] = {0};
  largest["waits"] = test::Waits{};
  actions.insert(actions.begin() + test::askRows, largest);
  AveragerRun run(3, "seed=2", &plan);
  for (int64_t rows : rowsOfCalls) {
    run.run(rows);
    EXPECT_EQ(run.loss(rows), run.expectedMean);
  }
  std::vector<CollectiveReport> collectives = run.instance().collectives();
  ASSERT_EQ(collectives.size(), 1u);
  EXPECT_EQ(collectives[0].executed, (CollectiveCount{18, 144}));
  EXPECT_EQ(collectives[0].counted, collectives[0].executed);
}

TEST(Replicas, ShareTheThreads) {
  EXPECT_EQ(AveragerRun(2).instance().team().threads(), 1);
  EXPECT_EQ(AveragerRun(5).instance().threads(), 5);
}

class DeletedReplicaWait : public testing::TestWithParam<int> {};

/// One race detector covers all replicas.
TEST_P(DeletedReplicaWait, IsReportedAsARace) {
  Json plan = test::averagerPlan(2);
  plan["entries"][1]["actions"][GetParam()]["waits"].erase(size_t(0));
  Status status = guarded([&] {
    AveragerRun run(2, "seed=1", &plan);
    run.run(64);
    run.run(64);
    run.instance().synchronize();
  });
  EXPECT_EQ(status.code, ExitCode::internal);
  EXPECT_NE(status.message.find("race"), std::string::npos) << status.message;
  EXPECT_NE(status.message.find("replica "), std::string::npos) << status.message;
}

INSTANTIATE_TEST_SUITE_P(Waits, DeletedReplicaWait, testing::Values(test::reduce, test::update));

/// Both replicas' exchanges end at the same time of one clock.
TEST(Replicas, HaveOneClock) {
  AveragerRun run(2, "seed=1,latency=7us");
  auto times = [&](int64_t replica) -> WorkTimes & { return run.instance().executor(replica).times(); };
  run.instance().synchronize();
  times(0).start(/*oneByOne=*/false);
  times(1).start(/*oneByOne=*/false);
  run.run(64);
  run.instance().synchronize();
  std::vector<double> ends;
  for (int64_t replica : {0, 1})
    for (const WorkTime &time : times(replica).take())
      if (time.work.name == "sum, model.cpp:2:1") {
        EXPECT_EQ(time.work.bytes, 8);
        ends.push_back(time.end);
      }
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(Api, RunsReplicas) {
  std::string plan = test::averagerPlan(2).dump();
  sluice_artifact artifact = test::averager(plan);
  setenv("SLUICE_BACKEND_PATH", SLUICE_BINARY_DIR "/lib/sluice/backends", 1);
  sluice_instance *model = nullptr;
  sluice_instance_options options = {sizeof options, 2, nullptr, "sim:2-3", nullptr};
  ASSERT_EQ(sluice_instance_create(&artifact, &options, &model), 0) << sluice_last_error();
  ASSERT_EQ(sluice_instance_run(model, "init", 1), 0) << sluice_last_error();
  const int32_t x[] = {1, 2, 3};
  int32_t y[3] = {};
  ASSERT_EQ(sluice_instance_set_input(model, "predict", "x", x, sizeof x, 3), 0) << sluice_last_error();
  ASSERT_EQ(sluice_instance_run(model, "predict", 3), 0) << sluice_last_error();
  ASSERT_EQ(sluice_instance_get_output(model, "predict", "y", y, sizeof y, 3), 0) << sluice_last_error();
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 3);
  EXPECT_EQ(y[2], 5);
  sluice_instance_destroy(model);
}

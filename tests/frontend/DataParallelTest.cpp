// Explicit data parallelism: items 44 to 47 of the checklist at graph level.
#include "Observe.h"
#include "frontend/graph/GraphImpl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using sluice::test::messageOf;
using testing::HasSubstr;

namespace {

const std::vector<Device> kTwo{gpu(0), gpu(1)};

struct DataParallel : testing::Test {
  DataParallel() { g.set_devices("cpu,sim:0,sim:1"); }

  Graph g{"test"};

  /// The shape and device of every part.
  static std::vector<std::string> shapes(const std::vector<Tensor> &parts) {
    std::vector<std::string> all;
    for (const Tensor &part : parts)
      all.push_back(part.shape().str() + "@" + part.device()->str());
    return all;
  }
  int count(const std::string &op) {
    int found = 0;
    detail::Access::graph(g)->graph.walk(
        [&](mlir::Operation *each) { found += each->getName().getStringRef() == "sluice." + op; });
    return found;
  }
};

struct Normalized : nn::Module {
  using Module::Module;
  nn::Conv2d conv{this, "conv", 3, 4, 3};
  nn::BatchNorm2d bn{this, "bn", 4};
  nn::Linear fc{this, "fc", 144, 10};
  Tensor forward(Tensor x) override { return fc(relu(bn(conv(x))).flatten(1)); }
};

struct Shifted : nn::Module {
  Graph graph;
  nn::Linear fc{this, "fc", 20, 10};
  explicit Shifted(Graph &graph) : Module(graph), graph(graph) {}
  Tensor forward(Tensor x) override { return fc(x) + graph.ones({10}); }
};

using checklist_44_split = DataParallel;
using checklist_45_uneven_split = DataParallel;
using checklist_46_data_parallel = DataParallel;
using checklist_47_allreduce = DataParallel;

} // namespace

TEST_F(checklist_44_split, FeaturesAndLabelsAlike) {
  auto [xs, ys] = split_batch(g.input("x", f32, {4, 6}), g.input("y", i32, {4}), kTwo);
  EXPECT_THAT(shapes(xs), testing::ElementsAre("[2, 6]@gpu(0)", "[2, 6]@gpu(1)"));
  EXPECT_THAT(shapes(ys), testing::ElementsAre("[2]@gpu(0)", "[2]@gpu(1)"));
}

TEST_F(checklist_44_split, UnequalLengthsFail) {
  Tensor x = g.input("x", f32, {4, 6}), y = g.input("y", i32, {6});
  EXPECT_THAT(messageOf([&] { split_batch(x, y, kTwo); }), HasSubstr("lengths differ: 4 of x and 6 of y"));
}

TEST_F(checklist_44_split, RowsThatShowLaterAreForReplicas) {
  Tensor x = g.input("x", f32, {Dim{"batch"}, 6});
  EXPECT_THAT(messageOf([&] { split(x, kTwo); }),
              HasSubstr("the rows of 'batch' show when the program runs; `sluice compile --replicas 2` splits them"));
}

TEST_F(checklist_44_split, NoDevicesFail) {
  EXPECT_THAT(messageOf([&] { split(g.ones({4}), std::vector<Device>()); }),
              HasSubstr("split: needs at least one device"));
}

TEST_F(checklist_45_uneven_split, FailsUnlessAskedFor) {
  Tensor x = g.input("x", f32, {51, 6});
  EXPECT_THAT(messageOf([&] { split(x, kTwo); }), HasSubstr("cannot split 51 rows among 2 devices evenly"));
  EXPECT_THAT(shapes(split(x, kTwo, {.even_split = false})), testing::ElementsAre("[26, 6]@gpu(0)", "[25, 6]@gpu(1)"));
}

TEST_F(checklist_45_uneven_split, FewerRowsThanDevicesFailEitherWay) {
  Tensor x = g.input("x", f32, {1, 6});
  for (bool even : {true, false})
    EXPECT_THAT(messageOf([&] { split(x, kTwo, {.even_split = even}); }),
                HasSubstr("cannot split 1 rows among 2 devices: a tensor has at least one row"));
}

TEST_F(checklist_46_data_parallel, JoinsItsPartsOnTheFirstDevice) {
  nn::Module net{g};
  nn::Linear fc{&net, "fc", 20, 10};
  fc.to(gpu(0));
  Tensor y = nn::data_parallel(fc, g.input("x", f32, {50, 20}), kTwo);
  EXPECT_EQ(y.shape().str() + "@" + y.device()->str(), "[50, 10]@gpu(0)");
  g.output("y", y);
  for (const char *part : {"tensor<25x10xf32, #acc0", "tensor<25x10xf32, #acc1"})
    EXPECT_THAT(g.str(), HasSubstr(part));
  EXPECT_EQ(count("copy"), 2 /* rows */ + 2 /* parameters */ + 1 /* the second result */);
}

TEST_F(checklist_46_data_parallel, OneDeviceIsTheModuleItself) {
  nn::Module net{g};
  nn::Linear fc{&net, "fc", 20, 10};
  fc.to(gpu(0));
  nn::data_parallel(fc, g.input("x", f32, {50, 20}), {gpu(0)});
  EXPECT_EQ(count("copy"), 1);
  EXPECT_EQ(count("concat"), 0);
}

// PyTorch keeps the first replica's writes.
TEST_F(checklist_46_data_parallel, BuffersAreUpdatedByTheFirstDevice) {
  Normalized net{g};
  net.to(gpu(0));
  g.output("y", nn::data_parallel(net, g.input("x", f32, {4, 3, 8, 8}), kTwo));
  EXPECT_EQ(count("batch_norm"), 2);
  EXPECT_EQ(count("set"), 2);
  g.str(); // verifies
}

// On the replica's device: the caller's scope may be another device.
TEST_F(checklist_46_data_parallel, ConstantsAreCreatedOnTheirReplicasDevice) {
  Shifted net{g};
  net.to(gpu(0));
  Tensor x = g.input("x", f32, {4, 20});
  DeviceScope scope(g, gpu(0));
  EXPECT_EQ(nn::data_parallel(net, x, kTwo).device(), gpu(0));
  EXPECT_EQ(g.ones({2}).device(), gpu(0)) << "the scope is as before";
}

TEST_F(checklist_46_data_parallel, TheModuleLivesOnTheFirstDevice) {
  Normalized net{g};
  net.to(gpu(1));
  Tensor x = g.input("x", f32, {4, 3, 8, 8});
  EXPECT_THAT(messageOf([&] { nn::data_parallel(net, x, kTwo); }),
              HasSubstr("data_parallel: 'conv.weight' is not on gpu(0), the first device"));
}

TEST_F(checklist_47_allreduce, SumsAreWhereTheirTermsAre) {
  Tensor a = g.ones({2}).to(gpu(0)), b = g.full({2}, 2).to(gpu(1));
  EXPECT_THAT(shapes(allreduce({a, b})), testing::ElementsAre("[2]@gpu(0)", "[2]@gpu(1)"));
}

TEST_F(checklist_47_allreduce, SumsNeedDevicesAndOneShape) {
  Tensor a = g.ones({2}).to(gpu(0)), nowhere = g.input("x", f32, {2}), longer = g.ones({3}).to(gpu(1));
  EXPECT_THAT(messageOf([&] { allreduce({a, nowhere}); }), HasSubstr("allreduce: a tensor is on no device yet"));
  EXPECT_THAT(messageOf([&] { allreduce({a, longer}); }), HasSubstr("allreduce: sizes differ from those of the first"));
}

#include "Averager.h"

namespace sluice::test {

// Arenas.
static constexpr int averagerHostState = 0, averagerHost = 1, averagerState = 2, averagerTransient = 3;
// Queues.
static constexpr int averagerCpu = 0, averagerAcc = 1, averagerIn = 2, averagerOut = 3, averagerTalk = 4;

namespace {

/// Makes the plan for a number of replicas.
class AveragerPlan {
public:
  explicit AveragerPlan(int replicas)
      : replicas_(replicas), capacity_((averagerBatch + replicas - 1) / replicas), bytes_(4 * capacity_) {}

  Json make() const {
    Json plan;
    plan["format"] = runtime::planFormat;
    plan["model"] = "averager";
    plan["build"] = Json::object();
    plan["replicas"] = replicas_;
    plan["batch"] = averagerBatch;
    plan["capacity"] = capacity_;
    plan["in_flight"] = 2;
    plan["devices"] = {{{"name", "cpu"}, {"backend", "cpu"}, {"compiled_for", ordinals(0)}},
                       {{"name", "acc0"}, {"backend", "sim"}, {"compiled_for", ordinals(1)}}};
    plan["arenas"] = {{{"name", "state"}, {"device", 0}, {"bytes", 192}},
                      {{"name", "transient"}, {"device", 0}, {"bytes", 896}},
                      {{"name", "state"}, {"device", 1}, {"bytes", 192}},
                      {{"name", "transient"}, {"device", 1}, {"bytes", 896}}};
    plan["queues"] = {{{"name", "cpu"}, {"device", 0}, {"kind", "compute"}},
                      {{"name", "acc0"}, {"device", 1}, {"kind", "compute"}},
                      {{"name", "acc0.in"}, {"device", 1}, {"kind", "copy"}},
                      {{"name", "acc0.out"}, {"device", 1}, {"kind", "copy"}},
                      {{"name", "acc0.talk"}, {"device", 1}, {"kind", "communication"}}};
    plan["states"] = {state("total", "statistic", "f64", total_, 8), share("global_rows", globalRows_, rowsMirror_),
                      share("first_row", firstRow_, firstMirror_), state("weight", "parameter", "f64", weight_, 8)};
    plan["kernels"] = {kernel("begin_weight", 1, 0, 0), kernel("begin_total", 0, 1, 0), kernel("add", 1, 2, 200000),
                       kernel("update", 1, 3, 0), kernel("note", 0, 4, 0)};
    plan["entries"] = {init(), trainStep(), predict()};
    return plan;
  }

private:
  Json ordinals(int device) const {
    if (replicas_ == 1)
      return 0;
    Json list = Json::array();
    for (int replica = 0; replica < replicas_; ++replica)
      list.push_back(replica * device);
    return list;
  }

  static Json share(const char *name, const Json &home, const Json &mirror) {
    Json json = state(name, "share", "i64", home, 8);
    json["mirrors"] = Json::array({mirror});
    return json;
  }

  static Json entry(const char *name, Json inputs, Json outputs, Json actions) {
    return {{"name", name},
            {"inputs", std::move(inputs)},
            {"outputs", std::move(outputs)},
            {"actions", std::move(actions)},
            {"peak_bytes", {1088, 1088}}};
  }

  static Json init() {
    return entry("init", Json::array(), Json::array(),
                 {launchAction(0, {buffer(weight_, 8, "w")}, averagerAcc, {}),
                  launchAction(1, {buffer(total_, 8, "w")}, averagerCpu, {})});
  }

  /// The input's memory is free once the copy to the accelerator of two calls ago is complete.
  Json input(int bring) const {
    Json x = value("x", "i32", Json::array({capacity_}), 0, xOnHost_, bytes_);
    x["below"] = 100;
    x["waits"] = Waits{{bring, 2}};
    return x;
  }
  Json rowsOutput() const { return value("y", "i32", Json::array({capacity_}), 0, yOnHost_, bytes_); }
  CopyBytes rows() const { return {0, 4, bytes_}; }
  Json addAction(const Waits &waits) const {
    return launchAction(
        2, {buffer(x_, bytes_, "r"), buffer(firstMirror_, 8, "r"), buffer(y_, bytes_, "w"), buffer(sum_, 8, "w")},
        averagerAcc, waits);
  }

  static Json reduceAction() {
    return {{"collective",
             {{"name", "sum"},
              {"source", "model.cpp:2:1"},
              {"kind", "all_reduce"},
              {"reduction", "sum"},
              {"dtype", "f64"},
              {"count", 1},
              {"root", 0},
              {"send", withBytes(sum_)},
              {"receive", withBytes(sum_)}}},
            {"queues", {averagerTalk}},
            {"waits", Waits{{add, 0}}}};
  }

  static Json withBytes(Json slot) {
    slot["bytes"] = 8;
    return slot;
  }

  Json trainStep() const {
    int fewer = replicas_ == 1 ? 1 : 0;
    Json actions = {copyAction("global_rows", globalRows_, rowsMirror_, {8, 0, 8}, "stale", "state", averagerAcc, {}),
                    copyAction("first_row", firstRow_, firstMirror_, {8, 0, 8}, "stale", "state", averagerAcc, {}),
                    copyAction("x", xOnHost_, x_, rows(), "step", "input", averagerIn, {{add, 2}}),
                    addAction({{bringBatch, 0}})};
    if (replicas_ > 1)
      actions.push_back(reduceAction());
    actions.push_back(launchAction(
        3, {buffer(sum_, 8, "r"), buffer(rowsMirror_, 8, "r"), buffer(weight_, 8, "rw"), buffer(mean_, 8, "w")},
        averagerAcc, {{reduce - fewer, 0}, {returnMean - fewer, 1}}));
    actions.push_back(copyAction("mean", mean_, meanOnHost_, {8, 0, 8}, "step", "use", averagerOut,
                                 {{update - fewer, 0}, {note - fewer, 1}}));
    actions.push_back(launchAction(4, {buffer(meanOnHost_, 8, "r"), buffer(total_, 8, "rw"), buffer(loss_, 8, "w")},
                                   averagerCpu, {{returnMean - fewer, 0}}));
    actions.push_back(copyAction("y", y_, yOnHost_, rows(), "asked", "output", averagerOut, {{add, 0}}));
    return entry("train_step", Json::array({input(bringBatch)}),
                 {value("loss", "f64", Json::array(), -1, loss_, 8), rowsOutput()}, std::move(actions));
  }

  Json predict() const {
    Json actions = {copyAction("first_row", firstRow_, firstMirror_, {8, 0, 8}, "stale", "state", averagerAcc, {}),
                    copyAction("x", xOnHost_, x_, rows(), "step", "input", averagerIn, {{2, 2}}), addAction({{1, 0}}),
                    copyAction("y", y_, yOnHost_, rows(), "asked", "output", averagerOut, {{2, 0}})};
    return entry("predict", Json::array({input(1)}), Json::array({rowsOutput()}), std::move(actions));
  }

  int replicas_, capacity_, bytes_;
  inline static const Json total_ = place(averagerHostState, 0), globalRows_ = place(averagerHostState, 64),
                           firstRow_ = place(averagerHostState, 128);
  inline static const Json xOnHost_ = place(averagerHost, 0, 256), yOnHost_ = place(averagerHost, 512),
                           meanOnHost_ = place(averagerHost, 768), loss_ = place(averagerHost, 832);
  inline static const Json weight_ = place(averagerState, 0), rowsMirror_ = place(averagerState, 64),
                           firstMirror_ = place(averagerState, 128);
  inline static const Json x_ = place(averagerTransient, 0, 256), y_ = place(averagerTransient, 512),
                           sum_ = place(averagerTransient, 768), mean_ = place(averagerTransient, 832);
};

} // namespace

Json averagerPlan(int replicas) { return AveragerPlan(replicas).make(); }

template <typename T> static T &at(void *buffer) { return *static_cast<T *>(buffer); }

static void beginWeight(void *const *buffers, int64_t, int64_t, int64_t) { at<double>(buffers[0]) = 1; }

static void beginTotal(void *const *buffers, int64_t, int64_t, int64_t) { at<double>(buffers[0]) = 0; }

static void addStage(void *const *buffers, int64_t rows, int64_t, int64_t) {
  const int32_t *x = static_cast<const int32_t *>(buffers[0]);
  int64_t first = at<int64_t>(buffers[1]);
  int32_t *y = static_cast<int32_t *>(buffers[2]);
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) {
    y[i] = x[i] + static_cast<int32_t>(first + i);
    sum += x[i] * static_cast<double>(first + i + 1);
  }
  at<double>(buffers[3]) = sum;
}

static void updateStage(void *const *buffers, int64_t, int64_t, int64_t) {
  double mean = at<double>(buffers[0]) / static_cast<double>(at<int64_t>(buffers[1]));
  at<double>(buffers[2]) += mean;
  at<double>(buffers[3]) = mean;
}

static void noteStage(void *const *buffers, int64_t, int64_t, int64_t) {
  at<double>(buffers[1]) += at<double>(buffers[0]);
  at<double>(buffers[2]) = at<double>(buffers[0]);
}

static const sluice_stage_fn averagerStages[] = {beginWeight, beginTotal, addStage, updateStage, noteStage};

sluice_artifact averager(const std::string &plan) { return artifactOf(plan, averagerStages); }

} // namespace sluice::test

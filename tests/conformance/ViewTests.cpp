// A backend's results do not depend on the size of the structs in a view: a later compiler's are larger.
#include "passes/backend/KernelView.h"
#include "tests/conformance/LargerView.h"
#include "tests/conformance/OpKernel.h"

using namespace mlir;

namespace sluice::conformance {

namespace {

/// A session of the tested compile half, called through its table only.
class Session {
public:
  explicit Session(const Subject &subject) : half(*subject.compile), services{sizeof(services), subject.host} {
    sluice_target_options options{sizeof(options), "native", kCapacity, &services, "", nullptr, SLUICE_MATH_STRICT};
    expect(half.begin(&options, &session) == SLUICE_OK, "begin fails");
  }
  ~Session() { half.end(session); }
  Session(const Session &) = delete;

  /// Why the backend cannot run the op, or "yes".
  std::string askSupport(const sluice_kernel_view *op) {
    return half.supports(session, op) == SLUICE_OK ? "yes" : half.last_error(session);
  }

  /// The kernel's launch, or why the kernel cannot be compiled.
  std::string askLaunch(const sluice_kernel_view *kernel) {
    Larger<sluice_launch_info> launch;
    sluice_launch_info &info = launch.known;
    info.struct_size = sizeof(launch);
    if (half.prepare(session, kernel, &info) != SLUICE_OK)
      return half.last_error(session);
    expect(launch.isWhole(), "prepare writes beyond what it knows of a sluice_launch_info");
    std::string function = info.function ? info.function : "host code";
    return function + ", " + std::to_string(info.num_stages) + " stages, " + std::to_string(info.workspace_bytes) +
           " bytes of workspace, " + std::to_string(info.parameters_bytes) + " of parameters";
  }

private:
  const sluice_backend_compile &half;
  sluice_compile_services services;
  sluice_session *session = nullptr;
};

} // namespace

/// Asks two sessions about one op, of which one is given larger views; whether the op is supported.
static bool checkSample(const Subject &subject, const ir::Sample &sample) {
  Session plain(subject), later(subject);
  auto expectSame = [&](const std::string &known, const std::string &larger) {
    expect(known == larger, sample.op + ": larger structs in a view make '" + larger + "' of '" + known + "'");
    return known;
  };
  OpKernel kernel(sample);
  passes::KernelView op(kernel.op());
  if (expectSame(plain.askSupport(op.get()), later.askSupport(LargerView(*op.get()).get())) != "yes")
    return false;
  kernel.takeLayouts(*begin(subject), Layouts::RowMajor);
  ir::KernelOp outlined = kernel.outline();
  passes::KernelView whole(outlined);
  if (subject.compile->wants_bytecode)
    whole.addBytecode(outlined);
  expectSame(plain.askLaunch(whole.get()), later.askLaunch(LargerView(*whole.get()).get()));
  return true;
}

static void largerViews(const Subject &subject) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  size_t supported = 0;
  for (const std::string &op : test::getOpsWith<ir::ReferenceOp>())
    for (const ir::Sample &sample : test::getSamples(op))
      supported += checkSample(subject, withElement(sample, "f32"));
  if (supported == 0)
    throw Skipped("it supports none of the ops");
}

std::vector<Test> compilerTests() {
  std::vector<Test> tests;
  for (const auto &part : {viewTests, opTests, graphTests, singleKernelTests})
    for (Test &test : part())
      tests.push_back(std::move(test));
  return tests;
}

std::vector<Test> viewTests() { return {{"compile.larger_views", largerViews}}; }

} // namespace sluice::conformance

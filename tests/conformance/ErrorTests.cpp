// Errors have a status and a reason, and the context remains usable.
#include "tests/conformance/RunHalf.h"

#include <algorithm>

namespace sluice::conformance {

static void expectError(const RunHalf &half, sluice_status status, sluice_status wanted, const std::string &what) {
  expect(status == wanted, what + " ends with status " + std::to_string(status) + ", not " + std::to_string(wanted));
  expect(!half.lastError().empty(), what + " gives no reason");
}

static void absentDevice(const Subject &subject) {
  RunHalf half(subject);
  void *address = nullptr;
  sluice_device_info info{};
  info.struct_size = sizeof(info);
  int32_t absent = half.devices();
  expectError(half, half.table().device_info(half.get(), absent, &info), SLUICE_UNSUPPORTED,
              "device_info of an absent device");
  expectError(half, half.table().allocate(half.get(), absent, 64, &address), SLUICE_UNSUPPORTED,
              "allocate on an absent device");
  half.allocate(64);
}

/// Launches work that must fail, at once or when waited for.
static sluice_status launchUnknown(RunHalf &half, sluice_queue *queue) {
  sluice_call call{sizeof(call), 1, 0, 1};
  sluice_launch launch = launchOf("conformance", call);
  launch.function = "a function that no backend has";
  return half.table().launch(queue, &launch);
}

static void unknownFunction(const Subject &subject) {
  RunHalf half(subject);
  sluice_queue *queue = half.queue(0, SLUICE_QUEUE_COMPUTE);
  sluice_status status = launchUnknown(half, queue);
  if (status == SLUICE_OK)
    status = half.table().synchronize_queue(queue);
  expectError(half, status, SLUICE_UNSUPPORTED, "launching an unknown function");
  half.finish(queue);
}

static void lateErrorAtAnEvent(const Subject &subject) {
  RunHalf half(subject);
  sluice_queue *queue = half.queue(0, SLUICE_QUEUE_COMPUTE);
  if (launchUnknown(half, queue) != SLUICE_OK)
    throw Skipped("launches that fail do so at once");
  sluice_event *event = half.record(queue);
  expectError(half, half.table().synchronize(event), SLUICE_UNSUPPORTED, "waiting for an event after work that failed");
}

static void lateErrorInAnotherQueue(const Subject &subject) {
  RunHalf half(subject);
  sluice_queue *failing = half.queue(0, SLUICE_QUEUE_COMPUTE), *reader = half.queue();
  if (launchUnknown(half, failing) != SLUICE_OK)
    throw Skipped("launches that fail do so at once");
  half.wait(reader, half.record(failing));
  Bytes found(64);
  half.download(reader, half.allocate(64), found);
  expectError(half, half.table().synchronize_queue(reader), SLUICE_UNSUPPORTED,
              "waiting for a queue that waited for work that failed");
}

static void foreignMemory(const Subject &subject) {
  RunHalf half(subject);
  alignas(64) static unsigned char foreign[64];
  expect(half.table().release(half.get(), 0, foreign) != SLUICE_OK, "memory was released that was never allocated");
  half.allocate(64);
}

static void unknownSetting(const Subject &subject) {
  RunHalf half(subject); // skips if there is nothing to open
  static const sluice_run_services services{sizeof(services), nullptr, nullptr};
  sluice_run_options options{sizeof(options), &services, "nobody_has_this_setting=1", nullptr};
  sluice_run *run = nullptr;
  sluice_status status = half.table().open(&options, &run);
  std::string reason = run ? half.table().last_error(run) : "";
  if (run)
    half.table().close(run);
  expect(status == SLUICE_USAGE, "an unknown setting ends with status " + std::to_string(status));
  expect(reason.find("nobody_has_this_setting") != std::string::npos, "the error does not name the setting: " + reason);
}

static void describesItself(const Subject &subject) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  sluice_compile_services services{sizeof(services), subject.host};
  sluice_target_options options{sizeof(options), "native", 0, &services, "", nullptr, SLUICE_MATH_STRICT};
  sluice_session *session = nullptr;
  expect(subject.compile->begin(&options, &session) == SLUICE_OK, "begin fails");
  sluice_target_info info{};
  info.struct_size = sizeof(info);
  expect(subject.compile->describe(session, &info) == SLUICE_OK, "describe fails");
  expect(info.device_type && *info.device_type, "the device has no type");
  size_t alignment = info.alignment;
  subject.compile->end(session);
  constexpr size_t kLeast = 64;
  size_t given = std::max(RunHalf(subject).info().alignment, kLeast);
  expect(alignment <= given, "buffers are to begin at multiples of " + std::to_string(alignment) +
                                 " bytes, and memory does at multiples of " + std::to_string(given));
}

static void unknownCompileSetting(const Subject &subject) {
  if (!subject.compile)
    throw Skipped("there is no compile half");
  sluice_compile_services services{sizeof(services), subject.host};
  sluice_target_options options{sizeof(options), "native",          0, &services, "nobody_has_this_setting=1",
                                nullptr,         SLUICE_MATH_STRICT};
  sluice_session *session = nullptr;
  sluice_status status = subject.compile->begin(&options, &session);
  std::string reason = session ? subject.compile->last_error(session) : "";
  if (session)
    subject.compile->end(session);
  expect(status == SLUICE_USAGE, "an unknown setting ends with status " + std::to_string(status));
  expect(reason.find("nobody_has_this_setting") != std::string::npos, "the error does not name the setting: " + reason);
}

std::vector<Test> errorTests() {
  return {{"error.absent_device", absentDevice},          {"error.unknown_function", unknownFunction},
          {"error.late_at_an_event", lateErrorAtAnEvent}, {"error.late_in_another_queue", lateErrorInAnotherQueue},
          {"error.foreign_memory", foreignMemory},        {"error.unknown_setting", unknownSetting},
          {"compile.describes_itself", describesItself},  {"compile.unknown_setting", unknownCompileSetting}};
}

} // namespace sluice::conformance

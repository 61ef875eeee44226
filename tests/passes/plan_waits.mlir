// RUN: sluice-opt %s --sluice-place-values --sluice-settle-copies --sluice-outline-kernels --sluice-schedule-actions --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s

// Tests that an input and its copy exist twice, so that the copy waits only for what read the same buffer two calls ago, and the host
// writes an input when the copy of two calls ago is done. What the accelerator makes exists once: it waits for the last call's reader.
// CHECK: sluice.entry @predict {{.*}}input_waits = [array<i64: [[IN:[0-9]+]], 2>]
// CHECK: sluice.wait "acc0.in" [[EXP:[0-9]+]] {calls = 2 : i64}
// CHECK-NEXT: sluice.copy %{{.+}} "input" {buffers = [array<i64: 1, 0, 64>, array<i64: 4, 0, 64>]
// CHECK-NEXT: sluice.record "acc0.in" [[IN]]
// CHECK-DAG: sluice.wait "acc0" [[IN]]
// CHECK-DAG: sluice.wait "acc0" [[OUT:[0-9]+]] {calls = 1 : i64}
// CHECK: sluice.kernel "acc0_exp"
// CHECK: sluice.record "acc0" [[EXP]]
// CHECK-NEXT: sluice.wait "acc0.out" [[SIN:[0-9]+]] {calls = 1 : i64}
// CHECK-NEXT: sluice.wait "acc0.out" [[EXP]]
// CHECK-NEXT: sluice.copy %{{.+}} "pin" {{.*}}ends = [array<i64: 4, 128, 8, 0>]
// CHECK-NEXT: sluice.record "acc0.out" [[OUT]]
// CHECK-NEXT: sluice.wait "cpu" [[OUT]]
// CHECK-NEXT: sluice.kernel "sin"
// CHECK: sluice.record "cpu" [[SIN]]
module attributes {sluice.copies = "insert",
    sluice.devices = [{name = "cpu", backend = "cpu", ordinal = 0}, {name = "acc0", backend = "sim", ordinal = 0}]} {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.sin %a : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

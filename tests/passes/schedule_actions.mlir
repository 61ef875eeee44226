// RUN: sluice-opt %s --split-input-file --sluice-place-values --sluice-settle-copies --sluice-outline-kernels --sluice-schedule-actions | FileCheck %s

// Tests that copies have queues of their own, that who needs a value waits for it, and that a wait which another one implies is
// left out: `add` reads both inputs, and the second copy comes after the first in their queue.
// CHECK-LABEL: module @waits
// CHECK: sluice.copy %{{.+}} {{.*}}queue = "acc0.in"
// CHECK: sluice.copy %{{.+}} {{.*}}queue = "acc0.in"
// CHECK-NEXT: sluice.record "acc0.in" [[IN:[0-9]+]]
// CHECK-NEXT: sluice.wait "acc0" [[IN]]
// CHECK-NEXT: sluice.kernel "acc0_add" {{.*}}queue = "acc0"
// CHECK: sluice.record "acc0" [[SUM:[0-9]+]]
// CHECK-NEXT: sluice.wait "acc0.out" [[SUM]]
// CHECK-NEXT: sluice.copy %{{.+}} "output" {{.*}}queue = "acc0.out"
// CHECK-NOT: sluice.wait
// CHECK: sluice.return
module @waits attributes {
    sluice.devices = [{name = "cpu", backend = "cpu", ordinal = 0}, {name = "acc0", backend = "sim", ordinal = 0}]} {
  sluice.entry @predict ["x", "z"] -> ["y"] (%x: tensor<2xf32>, %z: tensor<2xf32>) {
    %y = sluice.add %x, %z {sluice.pin = "acc0"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that the host's kernels, which keep the issuing thread busy, come after what can be issued for an accelerator.
// CHECK-LABEL: module @host_last
// CHECK: sluice.kernel "acc0_sin"
// CHECK: sluice.kernel "exp"
module @host_last attributes {
    sluice.devices = [{name = "cpu", backend = "cpu", ordinal = 0}, {name = "acc0", backend = "sim", ordinal = 0}]} {
  sluice.entry @predict ["x"] -> ["y", "z"] (%x: tensor<2xf32>) {
    %y = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %z = sluice.sin %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y, %z : tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// Tests that a state is updated in place when it has been read, also by a copy to another device.
// CHECK-LABEL: module @update
// CHECK: %[[W:.+]] = sluice.get @w
// CHECK-NEXT: sluice.copy %[[W]] "state" {{.*}}queue = "acc0"{{.*}}when = "stale"
// CHECK-NEXT: sluice.record "acc0" [[READ:[0-9]+]]
// CHECK: sluice.wait "cpu" [[READ]]
// CHECK-NEXT: sluice.kernel "exp" {{.*}}queue = "cpu"
module @update attributes {sluice.copies = "insert",
    sluice.devices = [{name = "cpu", backend = "cpu", ordinal = 0}, {name = "acc0", backend = "sim", ordinal = 0}]} {
  sluice.state "parameter" @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step [] -> ["y"] () {
    %w = sluice.get @w : tensor<2xf32>
    %new = sluice.exp %w : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.sin %w {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    sluice.set @w, %new : tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that a program for the host alone keeps its order and has neither events nor waits.
// CHECK-LABEL: module @host
// CHECK-NOT: sluice.record
// CHECK-NOT: sluice.wait
module @host {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.sin %a : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// RUN: sluice-opt %s --split-input-file --sluice-place-values --sluice-deduplicate-copies --sluice-isolate-ops --sluice-prepare-kernels --sluice-schedule-actions | FileCheck %s

// Tests that copies have separate queues, that consumers wait for their operands, and that implied waits are omitted:
// `add` reads both inputs, and the second copy comes after the first in their queue.
// CHECK-LABEL: module @waits
// CHECK: %done = sluice.transfer input step on "acc0.in"
// CHECK: [[IN:%done_.+]] = sluice.transfer input step on "acc0.in"
// CHECK: [[SUM:%done_.+]] = sluice.launch "acc0_add" @acc0_add on "acc0" after [[IN]]{{$}}
// CHECK: sluice.transfer output asked on "acc0.out" {{.*}} after [[SUM]]{{$}}
// CHECK-NOT: after
// CHECK: sluice.return
module @waits {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x", "z"] -> ["y"] (%x: tensor<2xf32>, %z: tensor<2xf32>) {
    %y = sluice.add %x, %z {sluice.pin = "acc0"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that the host's kernels, which block the issuing thread, are issued after all actions that are ready for an
// accelerator.
// CHECK-LABEL: module @host_last
// CHECK: sluice.launch "acc0_sin"
// CHECK: sluice.launch "exp"
module @host_last {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y", "z"] (%x: tensor<2xf32>) {
    %y = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %z = sluice.sin %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y, %z : tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// Tests that a state is updated in place after its readers, including a copy to another device.
// CHECK-LABEL: module @update
// CHECK: %[[W:.+]] = sluice.get @w
// CHECK: [[READ:%done.*]] = sluice.transfer state stale on "acc0"
// CHECK-NEXT: in %[[W]]
// CHECK: sluice.launch "exp" @exp on "cpu" after [[READ]]
module @update {
  sluice.model "model" format 2 phase "model" copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step [] -> ["y"] () {
    %w = sluice.get @w : tensor<2xf32>
    %new = sluice.exp %w : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.sin %w {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    sluice.set @w, %new : tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that a program for the host alone keeps its order and has no waits.
// CHECK-LABEL: module @host
// CHECK-NOT: after
// CHECK: sluice.launch "exp"
// CHECK-NOT: after
// CHECK: sluice.launch "sin"
// CHECK-NOT: after
// CHECK: sluice.return
module @host {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.sin %a : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

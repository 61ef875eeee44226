// RUN: sluice-opt %s --sluice-place-values --sluice-deduplicate-copies --sluice-isolate-ops --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s

// Tests that an input and its copy have two instances: the copy only waits for the reader of the same buffer two calls
// ago, and the host writes an input when the copy of two calls ago is done. The accelerator's own values have one
// instance: their producer waits for the last call's reader. Events of earlier calls are arguments; one of two calls
// ago is passed on once more.
// CHECK: sluice.entry @predict {{.*}}(%x: tensor<2xf32, #cpu>, [[IN1:%.+]]: !sluice.event, [[IN2:%.+]]: !sluice.event, [[EXP1:%.+]]: !sluice.event, [[EXP2:%.+]]: !sluice.event, [[OUT1:%.+]]: !sluice.event, [[SIN1:%.+]]: !sluice.event)
// CHECK: sluice.receive %x : tensor<2xf32, #cpu> at cpu.transient[0, 64] after [[IN2]]
// CHECK: [[IN:%done.*]] = sluice.transfer input step on "acc0.in" bytes 8 per_row 0 after [[EXP2]]
// CHECK-NEXT: in %x : tensor<2xf32, #cpu> at cpu.transient[0, 64]
// CHECK-NEXT: out tensor<2xf32, #acc0_> at acc0.transient[0, 64]
// CHECK: [[EXP:%done.*]] = sluice.launch "acc0_exp" @acc0_exp on "acc0" after [[IN]], [[OUT1]]
// CHECK: [[OUT:%done.*]] = sluice.transfer pin step on "acc0.out" bytes 8 per_row 0 after [[SIN1]], [[EXP]]
// CHECK: last_use acc0.transient[128] : 8
// CHECK: [[SIN:%done.*]] = sluice.launch "sin" @sin on "cpu" after [[OUT]]
// CHECK: sluice.return {{.*}}carry [[IN]], [[IN1]], [[EXP]], [[EXP1]], [[OUT]], [[SIN]]
module {
  sluice.model "model" format 2 phase "model" copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.sin %a : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

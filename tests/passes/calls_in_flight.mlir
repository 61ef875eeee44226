// RUN: sluice-opt %s --sluice-place-values --sluice-deduplicate-copies --sluice-isolate-ops --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s
// RUN: sed 's/in_flight 3/in_flight 1/' %s | sluice-opt --sluice-place-values --sluice-deduplicate-copies --sluice-isolate-ops --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s --check-prefix=ONE

// Tests that with three calls in flight an input and its copy have three instances: the copy waits for the reader of
// the same buffer three calls ago. With one call in flight they have one instance, whose bytes are shared: the host
// writes it when the previous call is done.
// CHECK: sluice.model {{.*}} in_flight 3
// CHECK: sluice.arena "acc0.transient" on "acc0" : 256 bytes
// CHECK: (%x: tensor<2xf32, #cpu>, [[IN1:%.+]]: !sluice.event, [[IN2:%.+]]: !sluice.event, [[IN3:%.+]]: !sluice.event, [[EXP1:%.+]]: !sluice.event, [[EXP2:%.+]]: !sluice.event, [[EXP3:%.+]]: !sluice.event, [[OUT1:%.+]]: !sluice.event, [[SIN1:%.+]]: !sluice.event)
// CHECK: sluice.receive %x : tensor<2xf32, #cpu> at cpu.transient[0, 64] after [[IN3]]
// CHECK: [[IN:%done.*]] = sluice.transfer input step on "acc0.in" bytes 8 per_row 0 after [[EXP3]]
// CHECK: [[EXP:%done.*]] = sluice.launch "acc0_exp"
// CHECK: carry [[IN]], [[IN1]], [[IN2]], [[EXP]], [[EXP1]], [[EXP2]],

// ONE: sluice.model {{.*}} in_flight 1
// ONE: (%x: tensor<2xf32, #cpu>, [[LAST:%.+]]: !sluice.event) {{.*}}{
// ONE: sluice.receive %x : tensor<2xf32, #cpu> at cpu.transient[{{[0-9]+}}] after [[LAST]]
// ONE: [[IN:%done.*]] = sluice.transfer input step
// ONE-NEXT: in %x : tensor<2xf32, #cpu> at cpu.transient[{{[0-9]+}}]{{$}}
// ONE: [[SIN:%done.*]] = sluice.launch "sin"
// ONE: carry [[SIN]]{{$}}
module {
  sluice.model "model" format 2 phase "model" in_flight 3 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.sin %a : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

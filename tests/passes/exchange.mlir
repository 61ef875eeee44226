// RUN: sluice-opt %s --sluice-prepare-kernels --sluice-schedule-actions | FileCheck %s
// RUN: sluice-opt %s --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s --check-prefix=PLANNED

// Tests that an exchange is one action of the queues that lead into both of its devices. It waits for both values, and
// consumers of a result wait for it. Each result has a separate buffer on the other value's device.
// CHECK: [[EXP:%done.*]] = sluice.launch "acc0_exp" @acc0_exp on "acc0" after
// CHECK: [[SIN:%done.*]] = sluice.launch "acc1_sin" @acc1_sin on "acc1" after
// CHECK: %[[R:.+]]:2, [[SWAP:%done.*]] = sluice.exchange placement on "acc1.in", "acc0.in" bytes 8, 16 per_row 0, 0 after [[EXP]], [[SIN]]
// CHECK-NEXT: in %{{.+}} : tensor<2xf32, #acc0_>{{$}}
// CHECK-NEXT: in %{{.+}} : tensor<4xf32, #acc1_>{{$}}
// CHECK-NEXT: out tensor<2xf32, #acc1_>{{$}}
// CHECK-NEXT: out tensor<4xf32, #acc0_>{{$}}
// CHECK-DAG: sluice.launch "acc1_neg" @acc1_neg on "acc1" after [[SWAP]]{{[[:space:]]+}}in %[[R]]#0
// CHECK-DAG: sluice.launch "acc0_neg" @acc0_neg on "acc0" after [[SWAP]]{{[[:space:]]+}}in %[[R]]#1
// PLANNED: sluice.exchange placement on "acc1.in", "acc0.in" bytes 8, 16 per_row 0, 0 after
// PLANNED-NEXT: in %{{.+}} : tensor<2xf32, #acc0_> at acc0.transient[{{[0-9]+}}]
// PLANNED-NEXT: in %{{.+}} : tensor<4xf32, #acc1_> at acc1.transient[{{[0-9]+}}]
// PLANNED-NEXT: out tensor<2xf32, #acc1_> at acc1.transient[{{[0-9]+}}]
// PLANNED-NEXT: out tensor<4xf32, #acc0_> at acc0.transient[{{[0-9]+}}]
#acc0 = #sluice.at<device = "acc0">
#acc1 = #sluice.at<device = "acc1">
#cpu = #sluice.at<device = "cpu">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.device "acc1" = "sim" 1
  sluice.entry @predict ["x", "z"] -> ["y", "w"] (%x: tensor<2xf32, #cpu>, %z: tensor<4xf32, #cpu>) {
    %0 = sluice.copy %x input when step {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    %1 = sluice.copy %z input when step {bytes = 16 : i64, bytes_per_row = 0 : i64} : (tensor<4xf32, #cpu>) -> tensor<4xf32, #acc1>
    %2 = sluice.kernel "acc0_exp" (%p = %0 : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
      %v = sluice.exp %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %v : tensor<2xf32, #acc0>
    }
    %3 = sluice.kernel "acc1_sin" (%p = %1 : tensor<4xf32, #acc1>) -> tensor<4xf32, #acc1> {
      %v = sluice.sin %p : (tensor<4xf32, #acc1>) -> tensor<4xf32, #acc1>
      sluice.yield %v : tensor<4xf32, #acc1>
    }
    %4:2 = sluice.exchange placement bytes 8, 16 per_row 0, 0
        in %2 : tensor<2xf32, #acc0>
        in %3 : tensor<4xf32, #acc1>
        out tensor<2xf32, #acc1>
        out tensor<4xf32, #acc0>
    %5 = sluice.kernel "acc1_neg" (%p = %4#0 : tensor<2xf32, #acc1>) -> tensor<2xf32, #acc1> {
      %v = sluice.neg %p : (tensor<2xf32, #acc1>) -> tensor<2xf32, #acc1>
      sluice.yield %v : tensor<2xf32, #acc1>
    }
    %6 = sluice.kernel "acc0_neg" (%p = %4#1 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.neg %p : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    %y = sluice.copy %5 output when asked {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #acc1>) -> tensor<2xf32, #cpu>
    %w = sluice.copy %6 output when asked {bytes = 16 : i64, bytes_per_row = 0 : i64} : (tensor<4xf32, #acc0>) -> tensor<4xf32, #cpu>
    sluice.return %y, %w : tensor<2xf32, #cpu>, tensor<4xf32, #cpu>
  }
}

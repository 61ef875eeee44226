// RUN: sluice-opt %s --sluice-prepare-kernels --sluice-schedule-actions | FileCheck %s
// RUN: sluice-opt %s --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s --check-prefix=PLANNED

// Tests that two sums that are available at about the same time are reduced in one bucket, in a separate queue, in
// place and contiguous. They are named after their producers, because they have no subjects. A value with another
// consumer is reduced separately, into another buffer; a state is broadcast in place.
// CHECK: sluice.queue "acc0.comm" on "acc0" communicates
// CHECK-DAG: sluice.launch "acc0_exp" @acc0_exp on "acc0" after
// CHECK-DAG: %[[R:.+]]:2, [[SUM:%done.*]] = sluice.communicate "acc0_exp and acc0_sin" all_reduce sum on "acc0.comm" after
// CHECK-DAG: sluice.communicate "acc0_cos" all_reduce max on "acc0.comm" after
// CHECK-DAG: %[[S:.+]], %{{done.*}} = sluice.communicate "acc0_cos" broadcast from 1 on "acc0.comm"
// CHECK: sluice.set @s, %[[S]]
// PLANNED: sluice.communicate "acc0_exp and acc0_sin" all_reduce sum on "acc0.comm"
// PLANNED-NEXT: in %{{.+}} : tensor<2xf32, #acc0_> at acc0.transient[[FIRST:.+]]
// PLANNED-NEXT: in %{{.+}} : tensor<4xf32, #acc0_> at acc0.transient[[SECOND:.+]]
// PLANNED-NEXT: out tensor<2xf32, #acc0_> at acc0.transient[[FIRST]]
// PLANNED-NEXT: out tensor<4xf32, #acc0_> at acc0.transient[[SECOND]]
// PLANNED: sluice.communicate "acc0_cos" broadcast from 1 on "acc0.comm"
// PLANNED-NEXT: in %{{.+}} : tensor<2xf32, #acc0_> at acc0.transient
// PLANNED-NEXT: out tensor<2xf32, #acc0_> at acc0.state[0]
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module {
  sluice.model "m" format 2 phase "fused" replicas 2
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 replicas [1]
  sluice.state statistic @s : tensor<2xf32> = <"constant", 0.0 : f64> physical tensor<2xf32, #acc0>
  sluice.entry @predict ["x", "z"] -> ["y", "w", "m"] (%x: tensor<2xf32, #cpu>, %z: tensor<4xf32, #cpu>) {
    %0 = sluice.copy %x input when step {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
    %1 = sluice.copy %z input when step {bytes = 16 : i64, bytes_per_row = 0 : i64} : (tensor<4xf32, #cpu>) -> tensor<4xf32, #acc0>
    %2 = sluice.kernel "acc0_exp" (%p = %0 : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
      %v = sluice.exp %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %v : tensor<2xf32, #acc0>
    }
    %3 = sluice.kernel "acc0_sin" (%p = %1 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.sin %p : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    %k = sluice.kernel "acc0_cos" (%p = %0 : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
      %v = sluice.cos %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %v : tensor<2xf32, #acc0>
    }
    %r2 = sluice.all_reduce sum %2 : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
    %r3 = sluice.all_reduce sum %3 : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
    %m = sluice.all_reduce max %k : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
    %b = sluice.broadcast from 1 %k : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
    %5 = sluice.kernel "acc0_neg" (%p = %r2 : tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0> {
      %v = sluice.neg %p : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
      sluice.yield %v : tensor<2xf32, #acc0>
    }
    %6 = sluice.kernel "acc0_neg_1" (%p = %r3 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.neg %p : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    sluice.set @s, %b : tensor<2xf32, #acc0>
    %y = sluice.copy %5 output when asked {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #acc0>) -> tensor<2xf32, #cpu>
    %w = sluice.copy %6 output when asked {bytes = 16 : i64, bytes_per_row = 0 : i64} : (tensor<4xf32, #acc0>) -> tensor<4xf32, #cpu>
    %n = sluice.copy %m output when asked {bytes = 8 : i64, bytes_per_row = 0 : i64} : (tensor<2xf32, #acc0>) -> tensor<2xf32, #cpu>
    sluice.return %y, %w, %n : tensor<2xf32, #cpu>, tensor<4xf32, #cpu>, tensor<2xf32, #cpu>
  }
}

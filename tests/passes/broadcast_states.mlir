// RUN: sluice-opt %s --split-input-file --sluice-prepare-kernels --sluice-schedule-fewest-buckets --sluice-plan-memory --sluice-plan-waits --sluice-verify-plan | FileCheck %s

// Tests that broadcasts into states form one bucket: the values are contiguous, and the states are contiguous before
// all others. The bucket also waits for readers of an old value.
// CHECK-LABEL: module @together
// CHECK: sluice.launch "acc0_train_step_old"
// CHECK: sluice.communicate "statistics of bn1 and bn2" broadcast from 0 on "acc0.comm" after
// CHECK-NEXT: in %{{.+}} : tensor<4xf32, #acc0_> at acc0.transient{{.}}[[#FIRST:]]]
// CHECK-NEXT: in %{{.+}} : tensor<20xf32, #acc0_> at acc0.transient{{.}}[[#FIRST+64]]]
// CHECK-NEXT: in %{{.+}} : tensor<4xf32, #acc0_> at acc0.transient{{.}}[[#FIRST+192]]]
// CHECK-NEXT: out tensor<4xf32, #acc0_> at acc0.state[0]
// CHECK-NEXT: out tensor<20xf32, #acc0_> at acc0.state[64]
// CHECK-NEXT: out tensor<4xf32, #acc0_> at acc0.state[192]
// CHECK-NOT: sluice.communicate
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module @together {
  sluice.model "m" format 2 phase "fused" replicas 2
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 replicas [1]
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64> physical tensor<4xf32, #acc0>
  sluice.state statistic @bn1.running_mean : tensor<4xf32> = <"constant", 0.0 : f64> physical tensor<4xf32, #acc0>
  sluice.state statistic @bn1.running_var : tensor<20xf32> = <"constant", 1.0 : f64> physical tensor<20xf32, #acc0>
  sluice.state statistic @bn2.running_mean : tensor<4xf32> = <"constant", 0.0 : f64> physical tensor<4xf32, #acc0>
  sluice.entry @train_step [] -> ["y"] () {
    %s0 = sluice.get @bn1.running_mean : tensor<4xf32, #acc0>
    %s1 = sluice.get @bn1.running_var : tensor<20xf32, #acc0>
    %s2 = sluice.get @bn2.running_mean : tensor<4xf32, #acc0>
    %n0 = sluice.kernel "acc0_train_step_0" (%p0 = %s0 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.neg %p0 : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    %b0 = sluice.broadcast from 0 %n0 of <statistic, "bn1.running_mean"> : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
    %n1 = sluice.kernel "acc0_train_step_1" (%p0 = %s1 : tensor<20xf32, #acc0>) -> tensor<20xf32, #acc0> {
      %v = sluice.neg %p0 : (tensor<20xf32, #acc0>) -> tensor<20xf32, #acc0>
      sluice.yield %v : tensor<20xf32, #acc0>
    }
    %b1 = sluice.broadcast from 0 %n1 of <statistic, "bn1.running_var"> : (tensor<20xf32, #acc0>) -> tensor<20xf32, #acc0>
    %n2 = sluice.kernel "acc0_train_step_2" (%p0 = %s2 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.neg %p0 : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    %b2 = sluice.broadcast from 0 %n2 of <statistic, "bn2.running_mean"> : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
    %e = sluice.kernel "acc0_train_step_old" (%p0 = %s0 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.exp %p0 : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    sluice.set @bn1.running_mean, %b0 : tensor<4xf32, #acc0>
    sluice.set @bn1.running_var, %b1 : tensor<20xf32, #acc0>
    sluice.set @bn2.running_mean, %b2 : tensor<4xf32, #acc0>
    %y = sluice.copy %e output when asked {bytes = 16 : i64, bytes_per_row = 0 : i64} : (tensor<4xf32, #acc0>) -> tensor<4xf32, #cpu>
    sluice.return %y : tensor<4xf32, #cpu>
  }
}

// -----

// Tests that a state into which several entry points broadcast is in no contiguous set.
// CHECK-LABEL: module @apart
// CHECK-DAG: sluice.communicate "statistic of bn1.running_mean" broadcast from 0 on "acc0.comm"
// CHECK-DAG: sluice.communicate "statistics of bn1 and bn2" broadcast from 0 on "acc0.comm"
// CHECK: sluice.entry @reset
// CHECK: sluice.communicate "statistic of bn1.running_mean" broadcast from 0 on "acc0.comm"
#acc0 = #sluice.at<device = "acc0">
#cpu = #sluice.at<device = "cpu">
module @apart {
  sluice.model "m" format 2 phase "fused" replicas 2
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 replicas [1]
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64> physical tensor<4xf32, #acc0>
  sluice.state statistic @bn1.running_mean : tensor<4xf32> = <"constant", 0.0 : f64> physical tensor<4xf32, #acc0>
  sluice.state statistic @bn1.running_var : tensor<20xf32> = <"constant", 1.0 : f64> physical tensor<20xf32, #acc0>
  sluice.state statistic @bn2.running_mean : tensor<4xf32> = <"constant", 0.0 : f64> physical tensor<4xf32, #acc0>
  sluice.entry @train_step [] -> ["y"] () {
    %s0 = sluice.get @bn1.running_mean : tensor<4xf32, #acc0>
    %s1 = sluice.get @bn1.running_var : tensor<20xf32, #acc0>
    %s2 = sluice.get @bn2.running_mean : tensor<4xf32, #acc0>
    %n0 = sluice.kernel "acc0_train_step_0" (%p0 = %s0 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.neg %p0 : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    %b0 = sluice.broadcast from 0 %n0 of <statistic, "bn1.running_mean"> : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
    %n1 = sluice.kernel "acc0_train_step_1" (%p0 = %s1 : tensor<20xf32, #acc0>) -> tensor<20xf32, #acc0> {
      %v = sluice.neg %p0 : (tensor<20xf32, #acc0>) -> tensor<20xf32, #acc0>
      sluice.yield %v : tensor<20xf32, #acc0>
    }
    %b1 = sluice.broadcast from 0 %n1 of <statistic, "bn1.running_var"> : (tensor<20xf32, #acc0>) -> tensor<20xf32, #acc0>
    %n2 = sluice.kernel "acc0_train_step_2" (%p0 = %s2 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.neg %p0 : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    %b2 = sluice.broadcast from 0 %n2 of <statistic, "bn2.running_mean"> : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
    %e = sluice.kernel "acc0_train_step_old" (%p0 = %s0 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.exp %p0 : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    sluice.set @bn1.running_mean, %b0 : tensor<4xf32, #acc0>
    sluice.set @bn1.running_var, %b1 : tensor<20xf32, #acc0>
    sluice.set @bn2.running_mean, %b2 : tensor<4xf32, #acc0>
    %y = sluice.copy %e output when asked {bytes = 16 : i64, bytes_per_row = 0 : i64} : (tensor<4xf32, #acc0>) -> tensor<4xf32, #cpu>
    sluice.return %y : tensor<4xf32, #cpu>
  }
  sluice.entry @reset [] -> [] () {
    %s0 = sluice.get @bn1.running_mean : tensor<4xf32, #acc0>
    %n0 = sluice.kernel "acc0_reset_0" (%p0 = %s0 : tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0> {
      %v = sluice.neg %p0 : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
      sluice.yield %v : tensor<4xf32, #acc0>
    }
    %b0 = sluice.broadcast from 0 %n0 of <statistic, "bn1.running_mean"> : (tensor<4xf32, #acc0>) -> tensor<4xf32, #acc0>
    sluice.set @bn1.running_mean, %b0 : tensor<4xf32, #acc0>
    sluice.return
  }
}

// RUN: sluice-opt %s --split-input-file --sluice-prepare-kernels --sluice-schedule-actions | FileCheck %s
// RUN: sluice-opt %s --split-input-file --sluice-prepare-kernels --sluice-schedule-fewest-buckets | FileCheck %s --check-prefix=FEWEST
// RUN: sluice-opt %s --split-input-file --sluice-prepare-kernels --sluice-schedule-each-alone | FileCheck %s --check-prefix=EACH

// Tests that gradients are reduced one by one if parameters can be updated during the next reduction, unless the policy
// is one bucket for all.
// CHECK-LABEL: module @large
// CHECK-DAG: sluice.communicate "gradient of c.weight" all_reduce sum on "acc0.comm"
// CHECK-DAG: sluice.communicate "gradient of b.weight" all_reduce sum on "acc0.comm"
// CHECK-DAG: sluice.communicate "gradient of a.weight" all_reduce sum on "acc0.comm"
// FEWEST-LABEL: module @large
// FEWEST: sluice.communicate "gradients of c.weight to a.weight (3)" all_reduce sum on "acc0.comm"
// FEWEST-NOT: sluice.communicate
// EACH-LABEL: module @large
// EACH-COUNT-3: sluice.communicate "gradient of
#acc0 = #sluice.at<device = "acc0">
module @large {
  sluice.model "m" format 2 phase "fused" replicas 2
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 replicas [1]
  sluice.state parameter @c.weight : tensor<1048576xf32> = <"constant", 1.0 : f64> physical tensor<1048576xf32, #acc0>
  sluice.state parameter @b.weight : tensor<1048576xf32> = <"constant", 1.0 : f64> physical tensor<1048576xf32, #acc0>
  sluice.state parameter @a.weight : tensor<1048576xf32> = <"constant", 1.0 : f64> physical tensor<1048576xf32, #acc0>
  sluice.entry @train_step [] -> [] () {
    %c = sluice.get @c.weight : tensor<1048576xf32, #acc0>
    %b = sluice.get @b.weight : tensor<1048576xf32, #acc0>
    %a = sluice.get @a.weight : tensor<1048576xf32, #acc0>
    %d:3 = sluice.kernel "acc0_exp" (%p0 = %c : tensor<1048576xf32, #acc0>, %p1 = %b : tensor<1048576xf32, #acc0>, %p2 = %a : tensor<1048576xf32, #acc0>) -> (tensor<1048576xf32, #acc0>, tensor<1048576xf32, #acc0>, tensor<1048576xf32, #acc0>) {
      %v0 = sluice.exp %p0 : (tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
      %v1 = sluice.exp %p1 : (tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
      %v2 = sluice.exp %p2 : (tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
      sluice.yield %v0, %v1, %v2 : tensor<1048576xf32, #acc0>, tensor<1048576xf32, #acc0>, tensor<1048576xf32, #acc0>
    }
    %rc = sluice.all_reduce sum %d#0 of <gradient, "c.weight"> : (tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
    %nc = sluice.kernel "acc0_sub_c" (%p0 = %c : tensor<1048576xf32, #acc0>, %p1 = %rc : tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0> {
      %v = sluice.sub %p0, %p1 : (tensor<1048576xf32, #acc0>, tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
      sluice.yield %v : tensor<1048576xf32, #acc0>
    }
    %rb = sluice.all_reduce sum %d#1 of <gradient, "b.weight"> : (tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
    %nb = sluice.kernel "acc0_sub_b" (%p0 = %b : tensor<1048576xf32, #acc0>, %p1 = %rb : tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0> {
      %v = sluice.sub %p0, %p1 : (tensor<1048576xf32, #acc0>, tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
      sluice.yield %v : tensor<1048576xf32, #acc0>
    }
    %ra = sluice.all_reduce sum %d#2 of <gradient, "a.weight"> : (tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
    %na = sluice.kernel "acc0_sub_a" (%p0 = %a : tensor<1048576xf32, #acc0>, %p1 = %ra : tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0> {
      %v = sluice.sub %p0, %p1 : (tensor<1048576xf32, #acc0>, tensor<1048576xf32, #acc0>) -> tensor<1048576xf32, #acc0>
      sluice.yield %v : tensor<1048576xf32, #acc0>
    }
    sluice.set @c.weight, %nc : tensor<1048576xf32, #acc0>
    sluice.set @b.weight, %nb : tensor<1048576xf32, #acc0>
    sluice.set @a.weight, %na : tensor<1048576xf32, #acc0>
    sluice.return
  }
}

// -----

// Tests that small gradients, whose reductions take only the link's latency, are reduced in one bucket, unless the
// policy is one bucket each.
// CHECK-LABEL: module @small
// CHECK: sluice.communicate "gradients of c.weight to a.weight (3)" all_reduce sum on "acc0.comm"
// CHECK-NOT: sluice.communicate
// FEWEST-LABEL: module @small
// FEWEST: sluice.communicate "gradients of c.weight to a.weight (3)" all_reduce sum on "acc0.comm"
// FEWEST-NOT: sluice.communicate
// EACH-LABEL: module @small
// EACH-COUNT-3: sluice.communicate "gradient of
// EACH-NOT: sluice.communicate
#acc0 = #sluice.at<device = "acc0">
module @small {
  sluice.model "m" format 2 phase "fused" replicas 2
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0 replicas [1]
  sluice.state parameter @c.weight : tensor<16xf32> = <"constant", 1.0 : f64> physical tensor<16xf32, #acc0>
  sluice.state parameter @b.weight : tensor<16xf32> = <"constant", 1.0 : f64> physical tensor<16xf32, #acc0>
  sluice.state parameter @a.weight : tensor<16xf32> = <"constant", 1.0 : f64> physical tensor<16xf32, #acc0>
  sluice.entry @train_step [] -> [] () {
    %c = sluice.get @c.weight : tensor<16xf32, #acc0>
    %b = sluice.get @b.weight : tensor<16xf32, #acc0>
    %a = sluice.get @a.weight : tensor<16xf32, #acc0>
    %d:3 = sluice.kernel "acc0_exp" (%p0 = %c : tensor<16xf32, #acc0>, %p1 = %b : tensor<16xf32, #acc0>, %p2 = %a : tensor<16xf32, #acc0>) -> (tensor<16xf32, #acc0>, tensor<16xf32, #acc0>, tensor<16xf32, #acc0>) {
      %v0 = sluice.exp %p0 : (tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
      %v1 = sluice.exp %p1 : (tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
      %v2 = sluice.exp %p2 : (tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
      sluice.yield %v0, %v1, %v2 : tensor<16xf32, #acc0>, tensor<16xf32, #acc0>, tensor<16xf32, #acc0>
    }
    %rc = sluice.all_reduce sum %d#0 of <gradient, "c.weight"> : (tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
    %nc = sluice.kernel "acc0_sub_c" (%p0 = %c : tensor<16xf32, #acc0>, %p1 = %rc : tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0> {
      %v = sluice.sub %p0, %p1 : (tensor<16xf32, #acc0>, tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
      sluice.yield %v : tensor<16xf32, #acc0>
    }
    %rb = sluice.all_reduce sum %d#1 of <gradient, "b.weight"> : (tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
    %nb = sluice.kernel "acc0_sub_b" (%p0 = %b : tensor<16xf32, #acc0>, %p1 = %rb : tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0> {
      %v = sluice.sub %p0, %p1 : (tensor<16xf32, #acc0>, tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
      sluice.yield %v : tensor<16xf32, #acc0>
    }
    %ra = sluice.all_reduce sum %d#2 of <gradient, "a.weight"> : (tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
    %na = sluice.kernel "acc0_sub_a" (%p0 = %a : tensor<16xf32, #acc0>, %p1 = %ra : tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0> {
      %v = sluice.sub %p0, %p1 : (tensor<16xf32, #acc0>, tensor<16xf32, #acc0>) -> tensor<16xf32, #acc0>
      sluice.yield %v : tensor<16xf32, #acc0>
    }
    sluice.set @c.weight, %nc : tensor<16xf32, #acc0>
    sluice.set @b.weight, %nb : tensor<16xf32, #acc0>
    sluice.set @a.weight, %na : tensor<16xf32, #acc0>
    sluice.return
  }
}

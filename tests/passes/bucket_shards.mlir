// RUN: sluice-opt %s --sluice-bucket-shards | FileCheck %s

// Tests that scattered gradients are concatenated, a row per replica, and that each gets its slice of the shard.
// Consumers of a shard come after the bucket. Updated shards are contiguous and are sliced from the rows of all
// replicas. A sum of another type stays separate, and so does a shard computed from a gathered value.
// CHECK-LABEL: sluice.entry @train_step
// CHECK-DAG: %[[X:.+]] = sluice.reshape %x {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
// CHECK-DAG: %[[Y:.+]] = sluice.reshape %{{.+}} {shape = array<i64: 2, 1>} : (tensor<2xf32>) -> tensor<2x1xf32>
// CHECK: %[[J:.+]] = sluice.concat %[[X]], %[[Y]] {axis = 1 : i64} : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
// CHECK: %[[V:.+]] = sluice.reshape %[[J]] {shape = array<i64: 6>}
// CHECK: %[[T:.+]] = sluice.reduce_scatter sum %[[V]] in 2 of <gradient, "w", "b"> : (tensor<6xf32>) -> tensor<3xf32>
// CHECK-DAG: %[[R:.+]] = sluice.slice %[[T]] {end = array<i64: 2>, start = array<i64: 0>, step = array<i64: 1>}
// CHECK-DAG: %[[S:.+]] = sluice.slice %[[T]] {end = array<i64: 3>, start = array<i64: 2>, step = array<i64: 1>}
// CHECK-DAG: %[[P:.+]] = sluice.neg %[[R]]
// CHECK-DAG: %[[Q:.+]] = sluice.neg %[[S]]
// CHECK-DAG: sluice.reduce_scatter sum %z in 2 of <gradient, "c"> : (tensor<2xf64>) -> tensor<1xf64>
// CHECK: %[[O:.+]] = sluice.concat %[[P]], %[[Q]] {axis = 0 : i64} : (tensor<2xf32>, tensor<1xf32>) -> tensor<3xf32>
// CHECK: %[[A:.+]] = sluice.all_gather %[[O]] in 2 of <parameter, "w", "b"> : (tensor<3xf32>) -> tensor<6xf32>
// CHECK: %[[M:.+]] = sluice.reshape %[[A]] {shape = array<i64: 2, 3>}
// CHECK: %[[F:.+]] = sluice.slice %[[M]] {end = array<i64: 2, 2>, start = array<i64: 0, 0>, step = array<i64: 1, 1>}
// CHECK: %[[W:.+]] = sluice.reshape %[[F]] {shape = array<i64: 4>}
// CHECK: %[[H:.+]] = sluice.slice %[[M]] {end = array<i64: 2, 3>, start = array<i64: 0, 2>, step = array<i64: 1, 1>}
// CHECK: %[[B:.+]] = sluice.reshape %[[H]] {shape = array<i64: 2>}
// CHECK: sluice.set @w, %[[W]]
// CHECK: sluice.set @b, %[[B]]
// CHECK: sluice.all_gather %{{.+}} in 2 : (tensor<1xf32>) -> tensor<2xf32>
module {
  sluice.model "m" format 2 phase "train" replicas 2 zero 1
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @b : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x", "z"] -> ["c", "d"] (%x: tensor<4xf32>, %z: tensor<2xf64>) {
    %r = sluice.reduce_scatter sum %x in 2 of <gradient, "w"> : (tensor<4xf32>) -> tensor<2xf32>
    %p = sluice.neg %r : (tensor<2xf32>) -> tensor<2xf32>
    %a = sluice.all_gather %p in 2 of <parameter, "w"> : (tensor<2xf32>) -> tensor<4xf32>
    sluice.set @w, %a : tensor<4xf32>
    %y = sluice.slice %x {start = array<i64: 1>, end = array<i64: 3>, step = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
    %s = sluice.reduce_scatter sum %y in 2 of <gradient, "b"> : (tensor<2xf32>) -> tensor<1xf32>
    %c = sluice.reduce_scatter sum %z in 2 of <gradient, "c"> : (tensor<2xf64>) -> tensor<1xf64>
    %q = sluice.neg %s : (tensor<1xf32>) -> tensor<1xf32>
    %b = sluice.all_gather %q in 2 of <parameter, "b"> : (tensor<1xf32>) -> tensor<2xf32>
    sluice.set @b, %b : tensor<2xf32>
    %e = sluice.slice %b {start = array<i64: 0>, end = array<i64: 1>, step = array<i64: 1>} : (tensor<2xf32>) -> tensor<1xf32>
    %d = sluice.all_gather %e in 2 : (tensor<1xf32>) -> tensor<2xf32>
    sluice.return %c, %d : tensor<1xf64>, tensor<2xf32>
  }
}

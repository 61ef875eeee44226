// RUN: sluice-opt %s --sluice-merge-collectives | FileCheck %s

// Tests that a value is reduced once for all consumers of its sum, and separately for another reduction.
// CHECK: %[[S:.+]] = sluice.all_reduce sum %d
// CHECK-NOT: sluice.all_reduce sum %d
// CHECK: %[[M:.+]] = sluice.all_reduce max %d
// CHECK: %[[B:.+]] = sluice.broadcast from 0 %d
// CHECK: %[[C:.+]] = sluice.broadcast from 1 %d
// CHECK: sluice.return %[[S]], %[[S]], %[[M]], %[[B]], %[[C]]
module {
  sluice.model "m" format 2 phase "train" capacity 4 replicas 2
  sluice.entry @predict ["d"] -> ["a", "b", "m", "c", "e"] (%d: tensor<2xf32>) {
    %a = sluice.all_reduce sum %d : (tensor<2xf32>) -> tensor<2xf32>
    %b = sluice.all_reduce sum %d : (tensor<2xf32>) -> tensor<2xf32>
    %m = sluice.all_reduce max %d : (tensor<2xf32>) -> tensor<2xf32>
    %c = sluice.broadcast from 0 %d : (tensor<2xf32>) -> tensor<2xf32>
    %e = sluice.broadcast from 1 %d : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %a, %b, %m, %c, %e : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
}

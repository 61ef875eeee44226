// RUN: sluice-opt %s --sluice-narrow-gradients | FileCheck %s

// Tests that the sum of a gradient, or a shard of it, is reduced in the module's wire type and cast back. A statistic,
// an output, a maximum and a gradient that is already as narrow are reduced in their own type.
// CHECK: %[[N:.+]] = sluice.cast %d {to = bf16} : (tensor<2xf32>) -> tensor<2xbf16>
// CHECK: %[[S:.+]] = sluice.all_reduce sum %[[N]] of <gradient, "w"> : (tensor<2xbf16>) -> tensor<2xbf16>
// CHECK: %[[W:.+]] = sluice.cast %[[S]] {to = f32} : (tensor<2xbf16>) -> tensor<2xf32>
// CHECK: %[[M:.+]] = sluice.all_reduce sum %d of <statistic, "m"> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: %[[O:.+]] = sluice.all_reduce sum %d of <output, "o"> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: %[[X:.+]] = sluice.all_reduce max %d of <gradient, "w"> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: %[[H:.+]] = sluice.all_reduce sum %h of <gradient, "w"> : (tensor<2xf16>) -> tensor<2xf16>
// CHECK: %[[C:.+]] = sluice.cast %d {to = bf16} : (tensor<2xf32>) -> tensor<2xbf16>
// CHECK: %[[R:.+]] = sluice.reduce_scatter sum %[[C]] in 2 of <gradient, "w"> : (tensor<2xbf16>) -> tensor<1xbf16>
// CHECK: %[[P:.+]] = sluice.cast %[[R]] {to = f32} : (tensor<1xbf16>) -> tensor<1xf32>
// CHECK-NOT: sluice.cast
// CHECK: sluice.return %[[W]], %[[M]], %[[O]], %[[X]], %[[H]], %[[P]]
module {
  sluice.model "m" format 2 phase "train" capacity 4 replicas 2 wire bf16
  sluice.entry @train_step ["d", "h"] -> ["a", "b", "o", "c", "e", "f"] (%d: tensor<2xf32>, %h: tensor<2xf16>) {
    %a = sluice.all_reduce sum %d of <gradient, "w"> : (tensor<2xf32>) -> tensor<2xf32>
    %b = sluice.all_reduce sum %d of <statistic, "m"> : (tensor<2xf32>) -> tensor<2xf32>
    %o = sluice.all_reduce sum %d of <output, "o"> : (tensor<2xf32>) -> tensor<2xf32>
    %c = sluice.all_reduce max %d of <gradient, "w"> : (tensor<2xf32>) -> tensor<2xf32>
    %e = sluice.all_reduce sum %h of <gradient, "w"> : (tensor<2xf16>) -> tensor<2xf16>
    %f = sluice.reduce_scatter sum %d in 2 of <gradient, "w"> : (tensor<2xf32>) -> tensor<1xf32>
    sluice.return %a, %b, %o, %c, %e, %f : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf16>, tensor<1xf32>
  }
}

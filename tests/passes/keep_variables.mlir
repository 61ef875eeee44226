// RUN: sluice-opt %s --sluice-keep-variables | FileCheck %s
// RUN: sluice-opt %s --sluice-phase-train | FileCheck %s --check-prefix=TRAIN

// Tests that consumers of a value with respect to which a gradient is taken keep reading it. Otherwise the product
// would absorb the transpose, and the value would have no gradient. States and inputs need no such protection.
// CHECK: %[[T:.+]] = sluice.transpose %w
// CHECK: %[[V:.+]] = sluice.variable %[[T]] : tensor<2x3xf32>
// CHECK: %[[Y:.+]] = sluice.einsum "ab,bc->ac" %x, %[[V]]
// CHECK: sluice.gradient %{{.+}} by %[[V]], %w, %x :
// CHECK: sluice.gradient %{{.+}} by %[[V]] :
// CHECK-NOT: sluice.variable

// The gradient with respect to w passes through the transpose, and the opaque op is gone.
// TRAIN: sluice.entry @predict
// TRAIN-NOT: sluice.variable
// TRAIN: %[[DT:.+]] = sluice.einsum "ab,ac->bc" %x, %{{.+}} -> tensor<2x3xf32>
// TRAIN: %[[DW:.+]] = sluice.transpose %[[DT]]
// TRAIN: sluice.return %[[DT]], %[[DW]]
module {
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<4x2xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %t = sluice.transpose %w {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %y = sluice.einsum "ab,bc->ac" %x, %t : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %loss = sluice.sum %y {axes = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
    %g:3 = sluice.gradient %loss by %t, %w, %x : (tensor<f32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<4x2xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<4x2xf32>)
    %h = sluice.gradient %loss by %t : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    sluice.output "dt", %g#0 : tensor<2x3xf32>
    sluice.output "dw", %g#1 : tensor<3x2xf32>
  }
}

// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points | FileCheck %s
// RUN: sluice-opt %s --split-input-file --sluice-phase-train | FileCheck %s --check-prefix=TRAIN

// Tests that the gradient of an op that reads its result reads the saved value instead, so that the op is dead.
// CHECK-LABEL: module @exp
// CHECK: sluice.entry @predict ["dy", "saved"] -> ["dx"] (%dy: tensor<3xf32>, %saved: tensor<3xf32>)
// CHECK-NOT: sluice.exp %
// CHECK-NOT: sluice.saved
// CHECK: sluice.return
// TRAIN-LABEL: module @exp
// TRAIN: sluice.entry @predict
// TRAIN-NOT: sluice.exp %
// TRAIN: %[[DX:.+]] = sluice.mul %{{.+}}, %saved
// TRAIN-NEXT: sluice.return %[[DX]]
module @exp {
  sluice.graph ["x", "dy", "saved"] (%x: tensor<3xf32>, %dy: tensor<3xf32>, %saved: tensor<3xf32>) {
    %y = sluice.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    %y1 = sluice.saved %y, %saved : tensor<3xf32>
    %p = sluice.mul %y1, %dy : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %p {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %dx = sluice.gradient %loss by %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.output "dx", %dx : tensor<3xf32>
  }
}

// -----

// Tests a chain of ops: their gradients read saved values and inputs only.
// CHECK-LABEL: module @chain
// CHECK: sluice.entry @predict ["x", "w", "dy", "sr", "st"] -> ["dx", "dw"]
// CHECK-NOT: sluice.einsum "ab,bc->ac" %x
// CHECK-NOT: sluice.relu %
// CHECK-NOT: sluice.tanh
// CHECK: sluice.return
// TRAIN-LABEL: module @chain
// TRAIN: sluice.entry @predict ["x", "w", "dy", "sr", "st"] -> ["dx", "dw"]
// TRAIN-NOT: sluice.tanh
// TRAIN-NOT: sluice.relu %
// TRAIN: sluice.einsum "{{.*}}" %{{.+}}, %w
// TRAIN: sluice.einsum "{{.*}}" %x, %
// TRAIN-NOT: sluice.einsum
// TRAIN: sluice.return
module @chain {
  sluice.graph ["x", "w", "dy", "sh", "sr", "st"] (%x: tensor<4x3xf32>, %w: tensor<3x2xf32>, %dy: tensor<4x2xf32>, %sh: tensor<4x2xf32>, %sr: tensor<4x2xf32>, %st: tensor<4x2xf32>) {
    %h = sluice.einsum "ab,bc->ac" %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %h1 = sluice.saved %h, %sh : tensor<4x2xf32>
    %r = sluice.relu %h1 : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %r1 = sluice.saved %r, %sr : tensor<4x2xf32>
    %t = sluice.tanh %r1 : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %t1 = sluice.saved %t, %st : tensor<4x2xf32>
    %p = sluice.mul %t1, %dy : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %loss = sluice.sum %p {axes = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
    %g:2 = sluice.gradient %loss by %x, %w : (tensor<f32>, tensor<4x3xf32>, tensor<3x2xf32>) -> (tensor<4x3xf32>, tensor<3x2xf32>)
    sluice.output "dx", %g#0 : tensor<4x3xf32>
    sluice.output "dw", %g#1 : tensor<3x2xf32>
  }
}

// -----

// Tests that the backward program of a convolution does not convolve the input again.
// CHECK-LABEL: module @conv
// CHECK: sluice.entry @predict ["x", "w", "dy"] -> ["dx", "dw"]
// CHECK-NOT: sluice.conv2d %
// CHECK: sluice.return
// TRAIN-LABEL: module @conv
// TRAIN: sluice.entry @predict
// TRAIN-NOT: sluice.conv2d %
// TRAIN-DAG: sluice.conv2d_input_grad
// TRAIN-DAG: sluice.conv2d_weight_grad
// TRAIN: sluice.return
module @conv {
  sluice.graph ["x", "w", "dy", "sy"] (%x: tensor<2x1x4x4xf32>, %w: tensor<3x1x3x3xf32>, %dy: tensor<2x3x2x2xf32>, %sy: tensor<2x3x2x2xf32>) {
    %y = sluice.conv2d %x, %w {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x1x4x4xf32>, tensor<3x1x3x3xf32>) -> tensor<2x3x2x2xf32>
    %y1 = sluice.saved %y, %sy : tensor<2x3x2x2xf32>
    %p = sluice.mul %y1, %dy : (tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x2x2xf32>
    %loss = sluice.sum %p {axes = array<i64: 0, 1, 2, 3>} : (tensor<2x3x2x2xf32>) -> tensor<f32>
    %g:2 = sluice.gradient %loss by %x, %w : (tensor<f32>, tensor<2x1x4x4xf32>, tensor<3x1x3x3xf32>) -> (tensor<2x1x4x4xf32>, tensor<3x1x3x3xf32>)
    sluice.output "dx", %g#0 : tensor<2x1x4x4xf32>
    sluice.output "dw", %g#1 : tensor<3x1x3x3xf32>
  }
}

// -----

// Tests that canonicalization does not look through the op: the product would otherwise absorb the transpose.
// CHECK-LABEL: module @opaque
// TRAIN-LABEL: module @opaque
// TRAIN: sluice.entry @predict ["x", "st"] -> ["y"]
// TRAIN-NEXT: sluice.einsum "ab,bc->ac" %x, %st
// TRAIN-NEXT: sluice.return
module @opaque {
  sluice.graph ["x", "w", "st"] (%x: tensor<4x2xf32>, %w: tensor<3x2xf32>, %st: tensor<2x3xf32>) {
    %t = sluice.transpose %w {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %t1 = sluice.saved %t, %st : tensor<2x3xf32>
    %y = sluice.einsum "ab,bc->ac" %x, %t1 : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    sluice.output "y", %y : tensor<4x3xf32>
  }
}

// -----

// Tests second gradients: d(exp)/dx = exp, of which both gradients read the saved value.
// CHECK-LABEL: module @twice
// CHECK: sluice.entry @predict ["saved"] -> ["ddx"]
// CHECK-NOT: sluice.exp %
// CHECK: sluice.return
// TRAIN-LABEL: module @twice
// TRAIN: sluice.entry @predict ["saved"] -> ["ddx"]
// TRAIN-NOT: sluice.exp %
// TRAIN: sluice.return
module @twice {
  sluice.graph ["x", "saved"] (%x: tensor<3xf32>, %saved: tensor<3xf32>) {
    %y = sluice.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    %y1 = sluice.saved %y, %saved : tensor<3xf32>
    %loss = sluice.sum %y1 {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %dx = sluice.gradient %loss by %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    %s = sluice.sum %dx {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %ddx = sluice.gradient %s by %x : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.output "ddx", %ddx : tensor<3xf32>
  }
}

// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-place-values --sluice-fuse-kernels | FileCheck %s

// Tests that a softmax does not fuse strided reads, because each of its passes over a row would repeat them.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "transpose"
// CHECK: sluice.kernel "softmax"
// CHECK-NOT: sluice.transpose
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x3x5xf32>) {
    %t = sluice.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<?x3x5xf32>) -> tensor<?x5x3xf32>
    %y = sluice.softmax %t {axis = 2 : i64} : (tensor<?x5x3xf32>) -> tensor<?x5x3xf32>
    sluice.output "y", %y : tensor<?x5x3xf32>
  }
}

// -----

// Tests that contiguous operands are read directly.
// CHECK: sluice.entry @predict
// CHECK-NOT: sluice.kernel "transpose"
// CHECK: sluice.kernel "softmax"
// CHECK: sluice.transpose
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x3x4x5xf32>) {
    %t = sluice.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<?x3x4x5xf32>) -> tensor<?x4x3x5xf32>
    %y = sluice.softmax %t {axis = 3 : i64} : (tensor<?x4x3x5xf32>) -> tensor<?x4x3x5xf32>
    sluice.output "y", %y : tensor<?x4x3x5xf32>
  }
}

// -----

// Tests that folds of many terms have a separate launch, with a task per fold, before their results are reduced.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "softmax_cross_entropy"
// CHECK: sluice.kernel "mean"
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "label"] (%x: tensor<?x5000xf32>, %label: tensor<?xi32>) {
    %losses = sluice.softmax_cross_entropy %x, %label {axis = 1 : i64} : (tensor<?x5000xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %losses {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.output "loss", %loss : tensor<f32>
  }
}

// -----

// Tests that folds of few terms have no separate launch.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "softmax_cross_entropy_mean"
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "label"] (%x: tensor<?x200xf32>, %label: tensor<?xi32>) {
    %losses = sluice.softmax_cross_entropy %x, %label {axis = 1 : i64} : (tensor<?x200xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %losses {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.output "loss", %loss : tensor<f32>
  }
}

// -----

// Tests that the consumers of stored two-byte values widen them.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_relu"
// CHECK: sluice.yield %{{.*}} : tensor<?x8xbf16, #cpu>
// CHECK: sluice.kernel "sum"
// CHECK-NEXT: tensor<?x8xbf16, #cpu>)
// CHECK: sluice.cast %{{.*}} {to = f32}
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "w"] (%x: tensor<?x8xbf16>, %w: tensor<8x8xbf16>) {
    %product = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %y = sluice.relu %product : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %wide = sluice.cast %y {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %sum = sluice.sum %wide {axes = array<i64: 0>} : (tensor<?x8xf32>) -> tensor<8xf32>
    sluice.output "y", %y : tensor<?x8xbf16>
    sluice.output "sum", %sum : tensor<8xf32>
  }
}

// -----

// Tests that a value whose only consumer is a sum is rematerialized with it, whether or not its two-byte operands are
// stored anyway.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_relu"
// CHECK: sluice.kernel "mul_sum"
// CHECK: sluice.kernel "einsum"
// CHECK: sluice.kernel "sum"
// CHECK: sluice.mul
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "w"] (%x: tensor<?x8xbf16>, %w: tensor<8x8xbf16>) {
    %product = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %y = sluice.relu %product : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
    %wide = sluice.cast %y {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %square = sluice.mul %wide, %wide : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %sum = sluice.sum %square {axes = array<i64: 0>} : (tensor<?x8xf32>) -> tensor<8xf32>
    %other = sluice.einsum "ab,bc->ac" %y, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
    %widened = sluice.cast %other {to = f32} : (tensor<?x8xbf16>) -> tensor<?x8xf32>
    %double = sluice.mul %widened, %widened : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %total = sluice.sum %double {axes = array<i64: 0>} : (tensor<?x8xf32>) -> tensor<8xf32>
    sluice.output "y", %y : tensor<?x8xbf16>
    sluice.output "sum", %sum : tensor<8xf32>
    sluice.output "total", %total : tensor<8xf32>
  }
}

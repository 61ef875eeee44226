// RUN: sluice-opt %s --split-input-file --sluice-quantize-weights --verify-diagnostics | FileCheck %s

// Tests that the matrix of a product becomes bytes and scales along the summed dimension, that `init` quantizes it, and
// that the vector stays.
// CHECK-LABEL: module @linear
// CHECK: sluice.state parameter @w : tensor<3x64xui8> = <"constant", 0.000000e+00 : f64>
// CHECK: sluice.state scales @w.scales : tensor<3x2xf16> = <"constant", 0.000000e+00 : f64> of @w
// CHECK: sluice.state parameter @b : tensor<3xf32>
// CHECK: sluice.entry @predict
// CHECK: %[[Q:.+]] = sluice.get @w : tensor<3x64xui8>
// CHECK: %[[S:.+]] = sluice.get @w.scales : tensor<3x2xf16>
// CHECK: %[[W:.+]] = sluice.dequantize_blocks %[[Q]], %[[S]] {axis = 1 : i64} : (tensor<3x64xui8>, tensor<3x2xf16>) -> tensor<3x64xf32>
// CHECK: sluice.einsum "ab,cb->ac" %x, %[[W]]
// CHECK: sluice.entry @init
// CHECK: %[[X:.+]] = sluice.normal
// CHECK: sluice.reshape %[[X]] {shape = array<i64: 3, 2, 32>}
// CHECK: sluice.reduce_max
// CHECK: sluice.set @w.scales, %{{.+}} : tensor<3x2xf16>
// CHECK: sluice.set @w, %{{.+}} : tensor<3x64xui8>
module @linear {
  sluice.model "linear" format 2 phase "train" capacity 4
  sluice.state parameter @w : tensor<3x64xf32> = <"normal", 0.0 : f64, 1.0 : f64>
  sluice.state parameter @b : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x64xf32>) {
    %w = sluice.get @w : tensor<3x64xf32>
    %y = sluice.einsum "ab,cb->ac" %x, %w : (tensor<?x64xf32>, tensor<3x64xf32>) -> tensor<?x3xf32>
    sluice.return %y : tensor<?x3xf32>
  }
  sluice.entry @init ["key"] -> [] (%key: tensor<2xi32>) {
    %w = sluice.normal %key {a = 0.0 : f64, b = 1.0 : f64, stream = 0 : i64, type = tensor<3x64xf32>} : (tensor<2xi32>) -> tensor<3x64xf32>
    sluice.set @w, %w : tensor<3x64xf32>
    sluice.return
  }
}

// -----

// Tests that the blocks of a matrix [in, out] are along its first dimension, and that the name of the scales is new.
// CHECK-LABEL: module @transposed
// CHECK: sluice.state parameter @w : tensor<64x3xui8>
// CHECK: sluice.state scales @w.scales_ : tensor<2x3xf16>
// CHECK: sluice.dequantize_blocks %{{.+}}, %{{.+}} {axis = 0 : i64}
module @transposed {
  sluice.model "transposed" format 2 phase "train" capacity 4
  sluice.state parameter @w : tensor<64x3xf32> = <"constant", 0.0 : f64>
  sluice.state parameter @w.scales : tensor<3xf32> = <"constant", 0.0 : f64>
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x64xf32>) {
    %w = sluice.get @w : tensor<64x3xf32>
    %y = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x64xf32>, tensor<64x3xf32>) -> tensor<?x3xf32>
    sluice.return %y : tensor<?x3xf32>
  }
}

// -----

// Tests that weights whose summed dimension has no whole blocks, or of which products sum over both dimensions, stay.
// CHECK-LABEL: module @odd
// CHECK: sluice.state parameter @short : tensor<3x40xf32>
// CHECK: sluice.state parameter @both : tensor<64x64xf32>
// CHECK-NOT: dequantize_blocks
module @odd {
  sluice.model "odd" format 2 phase "train" capacity 4
  // expected-warning @+1 {{'short' stays in f32: products sum over 40 elements, which is no multiple of 32}}
  sluice.state parameter @short : tensor<3x40xf32> = <"constant", 0.0 : f64>
  // expected-warning @+1 {{'both' stays in f32: products sum over both of its dimensions}}
  sluice.state parameter @both : tensor<64x64xf32> = <"constant", 0.0 : f64>
  sluice.entry @predict ["x", "z"] -> ["y", "a", "b"] (%x: tensor<?x40xf32>, %z: tensor<?x64xf32>) {
    %w = sluice.get @short : tensor<3x40xf32>
    %y = sluice.einsum "ab,cb->ac" %x, %w : (tensor<?x40xf32>, tensor<3x40xf32>) -> tensor<?x3xf32>
    %v = sluice.get @both : tensor<64x64xf32>
    %a = sluice.einsum "ab,cb->ac" %z, %v : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
    %b = sluice.einsum "ab,bc->ac" %z, %v : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
    sluice.return %y, %a, %b : tensor<?x3xf32>, tensor<?x64xf32>, tensor<?x64xf32>
  }
}

// -----

// Tests that training is an error.
module @trained {
  sluice.model "trained" format 2 phase "train" capacity 4
  sluice.state parameter @w : tensor<3x64xf32> = <"constant", 0.0 : f64>
  // expected-error @+1 {{cannot store weights in 'q8_0': 'train_step' updates 'w'; compile entry points for inference only, for example --entries predict}}
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<?x64xf32>) {
    %w = sluice.get @w : tensor<3x64xf32>
    %y = sluice.einsum "ab,cb->ac" %x, %w : (tensor<?x64xf32>, tensor<3x64xf32>) -> tensor<?x3xf32>
    sluice.set @w, %w : tensor<3x64xf32>
    sluice.return %y : tensor<?x3xf32>
  }
}

// -----

// Tests that scales need a parameter in bytes whose blocks they fit.
module @scales {
  sluice.state parameter @w : tensor<3x64xui8> = <"constant", 0.0 : f64>
  // expected-error @+1 {{has type 'tensor<3x4xf16>', which is no scale for each block of @w, of 'tensor<3x64xui8>'}}
  sluice.state scales @s : tensor<3x4xf16> = <"constant", 0.0 : f64> of @w
}

// -----

module @none {
  // expected-error @+1 {{has scales of no parameter}}
  sluice.state scales @s : tensor<3x2xf16> = <"constant", 0.0 : f64>
}

// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-functional-states --sluice-place-values --sluice-assign-layouts | FileCheck %s

// Tests that a weight and its new value are in panels in a functional model, so that the next call need not pack it
// again. %x and the product, which no elementwise op connects, are row-major.
// CHECK: sluice.entry @predict ["x", "w"] -> ["y", "next"] (%[[X:.+]]: tensor<4x8xf32, #cpu>, %[[W:.+]]: tensor<64x8xf32, #[[PANELS:cpu_A.+]]>)
// CHECK-NOT: sluice.relayout
// CHECK: %[[Y:.+]] = sluice.einsum "ab,cb->ac" %[[X]], %[[W]]
// CHECK: %[[NEXT:.+]] = sluice.mul %[[W]], %{{.+}} -> tensor<64x8xf32, #[[PANELS]]>
// CHECK-NOT: sluice.relayout
// CHECK: sluice.return %[[Y]], %[[NEXT]]
module {
  sluice.model "model" format 2 phase "model" entries ["predict"] functional
  sluice.graph ["x", "w"] (%x: tensor<4x8xf32>, %w: tensor<64x8xf32>) {
    %y = sluice.einsum "ab,cb->ac" %x, %w : (tensor<4x8xf32>, tensor<64x8xf32>) -> tensor<4x64xf32>
    %next = sluice.mul %w, %w : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
    sluice.output "y", %y : tensor<4x64xf32>
    sluice.output "next", %next : tensor<64x8xf32>
  }
}

// -----

// Tests that a weight without a new value stays row-major: the caller reads it elsewhere.
// CHECK: sluice.entry @predict ["x", "w"] -> ["y"] (%{{.+}}: tensor<4x8xf32, #cpu>, %{{.+}}: tensor<64x8xf32, #cpu>)
module {
  sluice.model "model" format 2 phase "model" entries ["predict"] functional
  sluice.graph ["x", "w"] (%x: tensor<4x8xf32>, %w: tensor<64x8xf32>) {
    %y = sluice.einsum "ab,cb->ac" %x, %w : (tensor<4x8xf32>, tensor<64x8xf32>) -> tensor<4x64xf32>
    sluice.output "y", %y : tensor<4x64xf32>
  }
}

// -----

// Tests that inputs and outputs are row-major in other models.
// CHECK: sluice.entry @predict ["x", "w"] -> ["y", "next"] (%{{.+}}: tensor<4x8xf32, #cpu>, %{{.+}}: tensor<64x8xf32, #cpu>)
module {
  sluice.model "model" format 2 phase "model"
  sluice.graph ["x", "w"] (%x: tensor<4x8xf32>, %w: tensor<64x8xf32>) {
    %y = sluice.einsum "ab,cb->ac" %x, %w : (tensor<4x8xf32>, tensor<64x8xf32>) -> tensor<4x64xf32>
    %next = sluice.mul %w, %w : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
    sluice.output "y", %y : tensor<4x64xf32>
    sluice.output "next", %next : tensor<64x8xf32>
  }
}

// -----

// Tests that inputs and outputs are row-major if there are several entry points: `eval_step` reads results of
// `train_step`.
// CHECK: sluice.entry @train_step ["x", "@w", "@lr"] -> ["loss", "@w"] (%{{.+}}: tensor<4x8xf32, #cpu>, %{{.+}}: tensor<64x8xf32, #cpu>,
// CHECK: sluice.return %{{.+}} : tensor<f32, #cpu>, tensor<64x8xf32, #cpu>
// CHECK: sluice.entry @init
module {
  sluice.model "model" format 2 phase "model" functional
  sluice.state parameter @w : tensor<64x8xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<4x8xf32>) {
    %w = sluice.get @w : tensor<64x8xf32>
    %y = sluice.einsum "ab,cb->ac" %x, %w : (tensor<4x8xf32>, tensor<64x8xf32>) -> tensor<4x64xf32>
    %loss = sluice.sum %y {axes = array<i64: 0, 1>} : (tensor<4x64xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// Tests that an input and an output in `sluice.passed`, which functions of arrays pass to each other, have the layout
// that kernels prefer. All others are row-major.
// CHECK: sluice.entry @predict ["given", "w"] -> ["r", "z"] (%[[GIVEN:.+]]: tensor<2x8x9x9xf32, #[[NHWC:cpu_acdb]]>, %{{.+}}: tensor<16x8x3x3xf32, #cpu>)
// CHECK: sluice.conv2d %[[GIVEN]], %
// CHECK-NEXT: %[[R:.+]] = sluice.relu %{{.+}} -> tensor<2x16x7x7xf32, #[[NHWC]]>
// CHECK: sluice.return %[[R]], %{{.+}} : tensor<2x16x7x7xf32, #[[NHWC]]>, tensor<16x7x7xf32, #cpu>
module {
  sluice.model "model" format 2 phase "model" entries ["predict"] functional {sluice.passed = ["r", "given"]}
  sluice.graph ["given", "w"] (%given: tensor<2x8x9x9xf32>, %w: tensor<16x8x3x3xf32>) {
    %y = sluice.conv2d %given, %w {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x8x9x9xf32>, tensor<16x8x3x3xf32>) -> tensor<2x16x7x7xf32>
    %r = sluice.relu %y : (tensor<2x16x7x7xf32>) -> tensor<2x16x7x7xf32>
    %z = sluice.sum %r {axes = array<i64: 0>} : (tensor<2x16x7x7xf32>) -> tensor<16x7x7xf32>
    sluice.output "r", %r : tensor<2x16x7x7xf32>
    sluice.output "z", %z : tensor<16x7x7xf32>
  }
}

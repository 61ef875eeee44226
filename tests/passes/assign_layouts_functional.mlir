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
  sluice.model "model" format 2 phase "model" functional
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
  sluice.model "model" format 2 phase "model" functional
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

// RUN: sluice-opt %s --sluice-build-entry-points --sluice-place-values --sluice-fuse-kernels | FileCheck %s --check-prefixes CHECK,FUSED
// RUN: sluice-opt %s --sluice-build-entry-points --sluice-place-values --sluice-isolate-ops | FileCheck %s --check-prefixes CHECK,ALONE

// Tests that elementwise consumers join the product that they follow, and that every op is alone without fusion.
// CHECK: sluice.entry @predict
// FUSED: sluice.kernel
// FUSED: sluice.einsum "ab,bc->ac"
// FUSED-NEXT: sluice.relu
// FUSED-NEXT: sluice.yield
// FUSED-NOT: sluice.kernel
// ALONE-COUNT-2: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.graph ["x", "w"] (%x: tensor<?x3xf32>, %w: tensor<3x2xf32>) {
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %y = sluice.relu %p : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
  }
}

// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-place-values --sluice-fuse-kernels | FileCheck %s

// Tests that a value computed from a state alone, such as an optimizer's decay, joins its consumer next to a product.
// CHECK: sluice.entry @predict
// CHECK: sluice.kernel "einsum_mul_add"
// CHECK: sluice.mul
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x", "y"] (%x: tensor<?x3xf32>, %y: tensor<?x2xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %factor = sluice.full {value = 0.9 : f64, type = tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %decayed = sluice.mul %w, %factor : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %gradient = sluice.einsum "ab,ac->bc" %x, %y : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<3x2xf32>
    %new = sluice.add %gradient, %decayed : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    sluice.output "new", %new : tensor<3x2xf32>
  }
}

// -----

// Tests that a value with two consumers is computed once, in the launch of one of them.
// CHECK: sluice.entry @predict
// CHECK: {{.+}}:2 = sluice.kernel "einsum_mul_add"
// CHECK-NOT: sluice.kernel
// CHECK: sluice.return
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x", "y"] (%x: tensor<?x3xf32>, %y: tensor<?x2xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %factor = sluice.full {value = 0.9 : f64, type = tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %decayed = sluice.mul %w, %factor : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %gradient = sluice.einsum "ab,ac->bc" %x, %y : (tensor<?x3xf32>, tensor<?x2xf32>) -> tensor<3x2xf32>
    %new = sluice.add %gradient, %decayed : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    sluice.output "new", %new : tensor<3x2xf32>
    sluice.output "decayed", %decayed : tensor<3x2xf32>
  }
}

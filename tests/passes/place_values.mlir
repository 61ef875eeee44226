// RUN: sluice-opt %s --sluice-build-entry-points --sluice-place-values | FileCheck %s

// Tests that every value and the physical type of a state get a device, and that the logical type has none.
// CHECK: #[[CPU:.+]] = #sluice.at<device = "cpu">
module {
  sluice.model "model" format 2 phase "model" capacity 4
  // CHECK: sluice.state parameter @w : tensor<3x2xf32> = {{.*}} physical tensor<3x2xf32, #[[CPU]]>
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    // CHECK: sluice.entry @predict ["x"] -> ["y"] (%[[X:.+]]: tensor<?x3xf32, #[[CPU]]>)
    // CHECK: %[[W:.+]] = sluice.get @w : tensor<3x2xf32, #[[CPU]]>
    // CHECK: sluice.einsum "ab,bc->ac" %[[X]], %[[W]] {{.*}} -> tensor<?x2xf32, #[[CPU]]>
    %w = sluice.get @w : tensor<3x2xf32>
    %y = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
  }
}

// RUN: sluice-opt %s --sluice-build-entry-points --sluice-place-values --sluice-assign-layouts | FileCheck %s

// Tests that an image with several channels gets a relayout for a convolution. An image with a single channel, which is
// already NHWC in memory, gets none.
// CHECK: sluice.entry @predict ["one", "two"] -> {{.+}} (%[[ONE:.+]]: tensor<?x1x5x5xf32, {{.+}}>, %[[TWO:.+]]: tensor<?x2x5x5xf32, {{.+}}>)
// CHECK-NOT: sluice.relayout %[[ONE]]
// CHECK: sluice.conv2d %[[ONE]]
// CHECK: %[[RELAID:.+]] = sluice.relayout %[[TWO]]
// CHECK: sluice.conv2d %[[RELAID]]
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.state parameter @v : tensor<4x1x3x3xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @w : tensor<4x2x3x3xf32> = <"constant", 1.0 : f64>
  sluice.graph ["one", "two"] (%one: tensor<?x1x5x5xf32>, %two: tensor<?x2x5x5xf32>) {
    %v = sluice.get @v : tensor<4x1x3x3xf32>
    %w = sluice.get @w : tensor<4x2x3x3xf32>
    %y = sluice.conv2d %one, %v {stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x1x5x5xf32>, tensor<4x1x3x3xf32>) -> tensor<?x4x3x3xf32>
    %z = sluice.conv2d %two, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<?x4x3x3xf32>
    sluice.output "y", %y : tensor<?x4x3x3xf32>
    sluice.output "z", %z : tensor<?x4x3x3xf32>
  }
}

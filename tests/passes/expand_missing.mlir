// RUN: sluice-opt %s --split-input-file --sluice-expand-missing --sluice-simplify --mlir-print-debuginfo | FileCheck %s

// Tests that a convolution with large groups, and its gradients, become a convolution per group on their device. Slices
// of an operand are computed once; device, pin and location are kept.
// CHECK-LABEL: sluice.entry @large
// CHECK: %[[X0:.+]] = sluice.slice %x {{.+}}sluice.pin = "acc0", start = array<i64: 0, 0, 0, 0>{{.+}} -> tensor<?x32x5x5xf32, #[[ACC0:.+]]> loc(#[[LINE:.+]])
// CHECK: %[[W0:.+]] = sluice.slice %w {{.+}} -> tensor<32x32x3x3xf32, #[[ACC0]]> loc(#[[LINE]])
// CHECK: %[[Y0:.+]] = sluice.conv2d %[[X0]], %[[W0]] {{.+}}groups = 1 {{.+}}sluice.pin = "acc0"{{.+}} loc(#[[LINE]])
// CHECK: %[[X1:.+]] = sluice.slice %x {{.+}}start = array<i64: 0, 32, 0, 0>
// CHECK: %[[W1:.+]] = sluice.slice %w {{.+}}start = array<i64: 32, 0, 0, 0>
// CHECK: %[[Y1:.+]] = sluice.conv2d %[[X1]], %[[W1]] {{.+}}groups = 1
// CHECK: %[[Y:.+]] = sluice.concat %[[Y0]], %[[Y1]] {axis = 1 : i64, sluice.pin = "acc0"}{{.+}} -> tensor<?x64x5x5xf32, #[[ACC0]]> loc(#[[LINE]])
// CHECK: %[[DY0:.+]] = sluice.slice %[[Y]]
// CHECK: %[[DX0:.+]] = sluice.conv2d_input_grad %[[DY0]], %[[W0]]
// CHECK: %[[DY1:.+]] = sluice.slice %[[Y]]
// CHECK: %[[DX1:.+]] = sluice.conv2d_input_grad %[[DY1]], %[[W1]]
// CHECK: %[[DX:.+]] = sluice.concat %[[DX0]], %[[DX1]] {axis = 1 : i64
// CHECK-NOT: sluice.slice
// CHECK: %[[DW0:.+]] = sluice.conv2d_weight_grad %[[X0]], %[[DY0]]
// CHECK: %[[DW1:.+]] = sluice.conv2d_weight_grad %[[X1]], %[[DY1]]
// CHECK: %[[DW:.+]] = sluice.concat %[[DW0]], %[[DW1]] {axis = 0 : i64{{.+}} -> tensor<64x32x3x3xf32, #[[ACC0]]>
// CHECK: sluice.return %[[DX]], %[[DW]]
#acc0 = #sluice.at<device = "acc0">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @large ["x", "w"] -> ["dx", "dw"] (%x: tensor<?x64x5x5xf32, #acc0>, %w: tensor<64x32x3x3xf32, #acc0>) {
    %y = sluice.conv2d %x, %w {sluice.pin = "acc0", stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 2 : i64} : (tensor<?x64x5x5xf32, #acc0>, tensor<64x32x3x3xf32, #acc0>) -> tensor<?x64x5x5xf32, #acc0>
    %dx = sluice.conv2d_input_grad %y, %w {sluice.pin = "acc0", size = array<i64: 5, 5>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 2 : i64} : (tensor<?x64x5x5xf32, #acc0>, tensor<64x32x3x3xf32, #acc0>) -> tensor<?x64x5x5xf32, #acc0>
    %dw = sluice.conv2d_weight_grad %x, %y {sluice.pin = "acc0", size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 2 : i64} : (tensor<?x64x5x5xf32, #acc0>, tensor<?x64x5x5xf32, #acc0>) -> tensor<64x32x3x3xf32, #acc0>
    sluice.return %dx, %dw : tensor<?x64x5x5xf32, #acc0>, tensor<64x32x3x3xf32, #acc0>
  }
}

// -----

// Tests that small groups, for which the CPU has a loop nest, stay one op. An op that a backend lacks entirely stays,
// so that the error names it.
// CHECK-LABEL: sluice.entry @small
// CHECK-NEXT: sluice.conv2d %x, %w {{.+}}groups = 64
// CHECK-NEXT: sluice.conv2d %z, %v {{.+}}groups = 2
#cpu = #sluice.at<device = "cpu">
#acc0 = #sluice.at<device = "acc0">
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "null" 0
  sluice.entry @small ["x", "w", "z", "v"] -> ["y", "u"] (%x: tensor<?x64x5x5xf32, #cpu>, %w: tensor<64x1x3x3xf32, #cpu>, %z: tensor<?x64x5x5xf32, #acc0>, %v: tensor<64x32x3x3xf32, #acc0>) {
    %y = sluice.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 64 : i64} : (tensor<?x64x5x5xf32, #cpu>, tensor<64x1x3x3xf32, #cpu>) -> tensor<?x64x5x5xf32, #cpu>
    %u = sluice.conv2d %z, %v {stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 2 : i64} : (tensor<?x64x5x5xf32, #acc0>, tensor<64x32x3x3xf32, #acc0>) -> tensor<?x64x5x5xf32, #acc0>
    sluice.return %y, %u : tensor<?x64x5x5xf32, #cpu>, tensor<?x64x5x5xf32, #acc0>
  }
}

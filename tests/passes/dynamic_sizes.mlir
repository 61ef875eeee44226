// RUN: sluice-opt %s | FileCheck %s
// RUN: sluice-opt %s | sluice-opt | FileCheck %s

// Tests that a dynamic size is printed as `?`, and read as `?` or as the number that MLIR uses for it.
// CHECK-LABEL: sluice.graph
sluice.graph ["x"] (%x: tensor<?x4xf32>) {
  // CHECK: sluice.reshape %x {shape = array<i64: ?, 2, 2>} : (tensor<?x4xf32>) -> tensor<?x2x2xf32>
  %0 = sluice.reshape %x {shape = array<i64: ?, 2, 2>} : (tensor<?x4xf32>) -> tensor<?x2x2xf32>
  // CHECK: sluice.reshape %{{.*}} {shape = array<i64: ?, 4>} : (tensor<?x2x2xf32>) -> tensor<?x4xf32>
  %1 = sluice.reshape %0 {shape = array<i64: -9223372036854775808, 4>} : (tensor<?x2x2xf32>) -> tensor<?x4xf32>
  // CHECK: sluice.slice %{{.*}} {end = array<i64: ?, 2>, start = array<i64: 0, 0>, step = array<i64: 1, 1>} :
  %2 = sluice.slice %1 {end = array<i64: ?, 2>, start = array<i64: 0, 0>, step = array<i64: 1, 1>} : (tensor<?x4xf32>) -> tensor<?x2xf32>
  // CHECK: sluice.expand %{{.*}} {dims = array<i64: 0, 1>, shape = array<i64: ?, 2>, test.note} :
  %3 = sluice.expand %2 {dims = array<i64: 0, 1>, shape = array<i64: ?, 2>, test.note} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  // CHECK: sluice.reshape %{{.*}} {shape = array<i64>} : (tensor<1xf32>) -> tensor<f32>
  %4 = sluice.full {type = tensor<1xf32>, value = 1.0 : f64} : () -> tensor<1xf32>
  %5 = sluice.reshape %4 {shape = array<i64>} : (tensor<1xf32>) -> tensor<f32>
  sluice.output "y", %3 : tensor<?x2xf32>
}

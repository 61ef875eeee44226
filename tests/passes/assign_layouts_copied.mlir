// RUN: sluice-opt %s --sluice-place-values --sluice-deduplicate-copies --sluice-assign-layouts | FileCheck %s

// Tests that a copy between devices keeps the layout that both sides prefer. Inputs and outputs of an entry point are
// row-major on both sides of their copies, so the relayout runs on the accelerator. Dumps name encodings after the
// device.
// CHECK-DAG: #cpu_acdb = #sluice.at<device = "cpu", layout = #map>
// CHECK-DAG: #acc0_acdb = #sluice.at<device = "acc0", layout = #map>
// CHECK: sluice.copy %{{.+}} input {{.*}} : (tensor<?x3x8x8xf32, #cpu>) -> tensor<?x3x8x8xf32, #acc0_>
// CHECK: sluice.copy %{{.+}} pin {{.*}} : (tensor<?x3x4x4xf32, #acc0_acdb>) -> tensor<?x3x4x4xf32, #cpu_acdb>
// CHECK: sluice.copy %{{.+}} pin {{.*}} : (tensor<?x3x2x2xf32, #cpu_acdb>) -> tensor<?x3x2x2xf32, #acc0_acdb>
// CHECK: %[[OUT:.+]] = sluice.relayout %{{.+}} -> tensor<?x3x1x1xf32, #acc0_>
// CHECK: sluice.copy %[[OUT]] output {{.*}} : (tensor<?x3x1x1xf32, #acc0_>) -> tensor<?x3x1x1xf32, #cpu>
module {
  sluice.model "model" format 2 phase "model" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x3x8x8xf32>) {
    %a = sluice.avg_pool2d %x {kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, sluice.pin = "acc0"} : (tensor<?x3x8x8xf32>) -> tensor<?x3x4x4xf32>
    %b = sluice.avg_pool2d %a {kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>} : (tensor<?x3x4x4xf32>) -> tensor<?x3x2x2xf32>
    %c = sluice.avg_pool2d %b {kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, sluice.pin = "acc0"} : (tensor<?x3x2x2xf32>) -> tensor<?x3x1x1xf32>
    sluice.return %c : tensor<?x3x1x1xf32>
  }
}

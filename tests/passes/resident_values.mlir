// RUN: sluice-opt %s --sluice-build-entry-points --sluice-place-values | FileCheck %s

// Tests that an input and an output on an accelerator are copied neither to the host nor from there, and that others are.
// CHECK-DAG: #[[CPU:.+]] = #sluice.at<device = "cpu">
// CHECK-DAG: #[[ACC:.+]] = #sluice.at<device = "acc0">
// CHECK: sluice.entry @predict ["x", "z"] -> ["y", "sum"] (%[[X:.+]]: tensor<?x3xf32, #[[ACC]]>, %[[Z:.+]]: tensor<?x3xf32, #[[CPU]]>)
// CHECK-NEXT: %[[Y:.+]] = sluice.relu %[[X]] : (tensor<?x3xf32, #[[ACC]]>) -> tensor<?x3xf32, #[[ACC]]>
// CHECK-NEXT: %[[IN:.+]] = sluice.copy %[[Z]] input
// CHECK-NEXT: %[[SUM:.+]] = sluice.add %[[Y]], %[[IN]]
// CHECK-NEXT: %[[OUT:.+]] = sluice.copy %[[SUM]] output : (tensor<?x3xf32, #[[ACC]]>) -> tensor<?x3xf32, #[[CPU]]>
// CHECK-NEXT: sluice.return {{.*}}%[[Y]], %[[OUT]]
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.graph ["x", "z"] (%x: tensor<?x3xf32, #sluice.at<device = "acc0">>, %z: tensor<?x3xf32>) {
    %y = sluice.relu %x : (tensor<?x3xf32, #sluice.at<device = "acc0">>) -> tensor<?x3xf32>
    %sum = sluice.add %y, %z : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.output "y", %y {sluice.on = "acc0"} : tensor<?x3xf32>
    sluice.output "sum", %sum : tensor<?x3xf32>
  }
}

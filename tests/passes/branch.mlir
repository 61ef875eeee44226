// RUN: sluice-opt %s --split-input-file | sluice-opt --split-input-file | FileCheck %s
// RUN: sluice-opt %s --split-input-file --sluice-lower-branches | FileCheck %s --check-prefix=LOOPS

// Tests that a branch round-trips, and is lowered to two loops, each of which runs once or not at all.
// CHECK-LABEL: module @either
// CHECK: %[[Y:.+]] = sluice.if %flag : tensor<i1> -> tensor<?x4xf32> {
// CHECK-NEXT: sluice.exp %x
// CHECK-NEXT: sluice.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: sluice.yield %x
// LOOPS-LABEL: module @either
// LOOPS: %[[ZERO:.+]] = sluice.full {type = tensor<?x4xf32>, value = 0.000000e+00 : f64}
// LOOPS: %[[THEN:.+]] = sluice.loop "then" 1 times
// LOOPS-NEXT: (%{{.+}} = %[[ZERO]] : tensor<?x4xf32>)
// LOOPS-NEXT: if %flag : tensor<i1> {
// LOOPS-NEXT: %[[E:.+]] = sluice.exp %x
// LOOPS-NEXT: sluice.next %[[E]]
// LOOPS: %[[NOT:.+]] = sluice.not %flag
// LOOPS: %[[ELSE:.+]] = sluice.loop "else" 1 times
// LOOPS-NEXT: (%{{.+}} = %[[THEN]] : tensor<?x4xf32>)
// LOOPS-NEXT: if %[[NOT]] : tensor<i1> {
// LOOPS-NEXT: sluice.next %x
// LOOPS: sluice.return %[[ELSE]]
module @either {
  sluice.entry @predict ["x", "flag"] -> ["y"] (%x: tensor<?x4xf32>, %flag: tensor<i1>) {
    %y = sluice.if %flag : tensor<i1> -> tensor<?x4xf32> {
      %e = sluice.exp %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
      sluice.yield %e : tensor<?x4xf32>
    } else {
      sluice.yield %x : tensor<?x4xf32>
    }
    sluice.return %y : tensor<?x4xf32>
  }
}

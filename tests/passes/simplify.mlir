// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --sluice-simplify | FileCheck %s

// Tests that equal ops are merged, and dead ops removed.
// CHECK: sluice.entry @predict
// CHECK: %[[E:.+]] = sluice.exp
// CHECK-NOT: sluice.exp
// CHECK-NOT: sluice.sin
// CHECK: sluice.add %[[E]], %[[E]]
module {
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %b = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %unused = sluice.sin %x : (tensor<2xf32>) -> tensor<2xf32>
    %y = sluice.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %y : tensor<2xf32>
  }
}

// -----

// Tests that a round-trip cast through a type that represents all elements is removed, and another one stays.
// CHECK: sluice.entry @predict ["x", "y"] {{.*}} (%[[X:.+]]: tensor<2xbf16>, %[[Y:.+]]: tensor<2xf32>)
// CHECK-NEXT: %[[NARROW:.+]] = sluice.cast %[[Y]] {to = bf16}
// CHECK-NEXT: %[[ROUNDED:.+]] = sluice.cast %[[NARROW]] {to = f32}
// CHECK-NEXT: sluice.return %[[X]], %[[ROUNDED]]
module {
  sluice.graph ["x", "y"] (%x: tensor<2xbf16>, %y: tensor<2xf32>) {
    %wide = sluice.cast %x {to = f32} : (tensor<2xbf16>) -> tensor<2xf32>
    %back = sluice.cast %wide {to = bf16} : (tensor<2xf32>) -> tensor<2xbf16>
    %same = sluice.cast %back {to = bf16} : (tensor<2xbf16>) -> tensor<2xbf16>
    %narrow = sluice.cast %y {to = bf16} : (tensor<2xf32>) -> tensor<2xbf16>
    %rounded = sluice.cast %narrow {to = f32} : (tensor<2xbf16>) -> tensor<2xf32>
    sluice.output "x", %same : tensor<2xbf16>
    sluice.output "y", %rounded : tensor<2xf32>
  }
}

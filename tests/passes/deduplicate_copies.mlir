// RUN: sluice-opt %s --split-input-file --sluice-place-values --sluice-deduplicate-copies --sluice-verify-placed | FileCheck %s

// Tests that there is one copy per value and destination, right after the value, with its bytes and the reason of the
// copy that the user wrote. The copy back is removed.
// CHECK-LABEL: module @merged
// CHECK: %[[A:.+]] = sluice.exp
// CHECK-NEXT: %[[B:.+]] = sluice.copy %[[A]] to when step {bytes = 0 : i64, bytes_per_row = 12 : i64}
// CHECK-NEXT: %[[C:.+]] = sluice.sin %[[B]]
// CHECK-NEXT: %[[D:.+]] = sluice.cos %[[B]]
// CHECK-NEXT: sluice.add %[[C]], %[[D]]
// CHECK-NEXT: sluice.copy %{{.+}} output
// CHECK-NEXT: sluice.relu %[[A]]
module @merged {
  sluice.model "model" format 2 phase "model" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y", "z"] (%x: tensor<?x3xf32>) {
    %a = sluice.exp %x : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %c = sluice.sin %a {sluice.pin = "acc0"} : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %d = sluice.cos %a {sluice.pin = "acc0"} : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %y = sluice.add %c, %d {sluice.pin = "acc0"} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %there = sluice.copy %a to : (tensor<?x3xf32>) -> tensor<?x3xf32, #sluice.at<device = "acc0">>
    %back = sluice.copy %there to : (tensor<?x3xf32, #sluice.at<device = "acc0">>) -> tensor<?x3xf32, #sluice.at<device = "cpu">>
    %z = sluice.relu %back : (tensor<?x3xf32, #sluice.at<device = "cpu">>) -> tensor<?x3xf32>
    sluice.return %y, %z : tensor<?x3xf32>, tensor<?x3xf32>
  }
}

// -----

// Tests that a state is copied when its mirror is stale, and an output on request.
// CHECK-LABEL: module @times
// CHECK: %[[W:.+]] = sluice.get @w
// CHECK-NEXT: sluice.copy %[[W]] state when stale {bytes = 8 : i64, bytes_per_row = 0 : i64}
// CHECK: sluice.copy %{{.+}} output when asked {bytes = 8 : i64, bytes_per_row = 0 : i64}
module @times {
  sluice.model "model" format 2 phase "model" copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.entry @predict [] -> ["y"] () {
    %w = sluice.get @w : tensor<2xf32>
    %a = sluice.exp %w {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    %v = sluice.get @w : tensor<2xf32>
    %y = sluice.add %a, %v {sluice.pin = "acc0"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that a copy_to is never merged or removed, even to its source's device.
// CHECK-LABEL: module @wanted
// CHECK-COUNT-2: sluice.copy %{{.+}} copy_to when step {bytes = 8
// CHECK: sluice.copy %{{.+}} copy_to : (tensor<2xf32, #acc0{{.*}}>) -> tensor<2xf32, #acc0
module @wanted {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    %a = sluice.copy %x copy_to : (tensor<2xf32>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %b = sluice.copy %x copy_to : (tensor<2xf32>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %c = sluice.copy %b copy_to : (tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32, #sluice.at<device = "acc0">>
    %y = sluice.add %a, %c : (tensor<2xf32, #sluice.at<device = "acc0">>, tensor<2xf32, #sluice.at<device = "acc0">>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// RUN: sluice-opt %s --split-input-file | sluice-opt --split-input-file | FileCheck %s --check-prefix=TEXT
// RUN: sluice-opt %s --split-input-file --sluice-lower-scans | FileCheck %s --check-prefix=LOOP
// RUN: sluice-opt %s --split-input-file --sluice-lower-scans --sluice-place-values --sluice-deduplicate-copies --sluice-fuse-kernels --sluice-settle-loops | FileCheck %s --check-prefix=KERNELS

// Tests the text form. A scan becomes a loop that counts steps, reads the slice of its step and writes its part of the
// stack, in place.
// TEXT-LABEL: module @forward
// TEXT: %[[R:.+]]:2 = sluice.scan 5 steps
// TEXT-NEXT: (%[[H:.+]] = %h : tensor<?x4xf32>,
// TEXT-NEXT: %[[S:.+]] = %x : tensor<?x5x4xf32> along 1)
// TEXT-NEXT: stack 1 {
// TEXT-NEXT: %[[N:.+]] = sluice.add %[[H]], %[[S]]
// TEXT-NEXT: sluice.step %[[N]] : tensor<?x4xf32> stack %[[N]] : tensor<?x4xf32>
// TEXT: sluice.return %[[R]]#0, %[[R]]#1 : tensor<?x4xf32>, tensor<?x5x4xf32>
// LOOP-LABEL: module @forward
// LOOP: %[[ZERO:.+]] = sluice.full {type = tensor<i32>, value = 0.{{0+}}e+00 : f64}
// LOOP: %[[STACK:.+]] = sluice.full {type = tensor<?x5x4xf32>
// LOOP: %[[R:.+]]:3 = sluice.loop "scan" 5 times
// LOOP-NEXT: (%[[I:.+]] = %[[ZERO]] : tensor<i32>,
// LOOP-NEXT: %[[H:.+]] = %h : tensor<?x4xf32>,
// LOOP-NEXT: %[[Y:.+]] = %[[STACK]] : tensor<?x5x4xf32>) {
// LOOP-NEXT: %[[S:.+]] = sluice.gather %x, %[[I]] {axis = 1 : i64}
// LOOP-NEXT: %[[N:.+]] = sluice.add %[[H]], %[[S]]
// LOOP: %[[NEXT:.+]] = sluice.add %[[I]]
// LOOP: %[[PART:.+]] = sluice.expand %[[N]]
// LOOP: %[[NEW:.+]] = sluice.dynamic_update_slice %[[Y]], %[[PART]], %[[I]] {axis = 1 : i64}
// LOOP: sluice.next %[[NEXT]], %[[N]], %[[NEW]]
// LOOP: sluice.return %[[R]]#1, %[[R]]#2
// KERNELS-LABEL: module @forward
// KERNELS: sluice.loop "scan" 5 times
// KERNELS: sluice.dynamic_update_slice {{.+}} {axis = 1 : i64, in_place}
module @forward {
  sluice.model "model" format 2 phase "train" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.entry @predict ["h", "x"] -> ["last", "all"] (%h: tensor<?x4xf32>, %x: tensor<?x5x4xf32>) {
    %last, %all = sluice.scan 5 steps
        (%a = %h : tensor<?x4xf32>,
         %s = %x : tensor<?x5x4xf32> along 1)
        stack 1 {
      %n = sluice.add %a, %s : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      sluice.step %n : tensor<?x4xf32> stack %n : tensor<?x4xf32>
    }
    sluice.return %last, %all : tensor<?x4xf32>, tensor<?x5x4xf32>
  }
}

// -----

// Tests that a reversed scan counts down, and that a nested scan becomes a nested loop.
// LOOP-LABEL: module @reverse
// LOOP: %[[LAST:.+]] = sluice.full {type = tensor<i32>, value = 2.{{0+}}e+00 : f64}
// LOOP: sluice.loop "scan" 3 times
// LOOP-NEXT: (%[[I:.+]] = %[[LAST]] : tensor<i32>,
// LOOP: sluice.loop "scan" 2 times
// LOOP: sluice.sub %[[I]]
// KERNELS-LABEL: module @reverse
module @reverse {
  sluice.model "model" format 2 phase "train" capacity 4 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<3x2xf32>) {
    %zero = sluice.full {value = 0.0 : f64, type = tensor<f32>} : () -> tensor<f32>
    %y = sluice.scan 3 steps reverse (%a = %zero : tensor<f32>, %s = %x : tensor<3x2xf32> along 0) {
      %b = sluice.scan 2 steps (%c = %a : tensor<f32>, %e = %s : tensor<2xf32> along 0) {
        %n = sluice.add %c, %e : (tensor<f32>, tensor<f32>) -> tensor<f32>
        sluice.step %n : tensor<f32>
      }
      sluice.step %b : tensor<f32>
    }
    sluice.return %y : tensor<f32>
  }
}

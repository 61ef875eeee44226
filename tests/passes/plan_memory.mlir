// RUN: sluice-opt %s --sluice-build-entry-points --sluice-place-values --sluice-isolate-ops --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory | FileCheck %s

// Tests that a value reuses the buffer of a dead one: a chain of four needs two buffers (of 64 bytes). Launches of
// equal kernels share one function.
// CHECK: sluice.arena "cpu.transient" on "cpu" : 128 bytes
// CHECK: sluice.launch "exp" @exp on "cpu"
// CHECK-NEXT: in %{{.+}} : tensor<2xf32, #cpu> at cpu.transient[[[A:[0-9]+]]]
// CHECK-NEXT: out tensor<2xf32, #cpu> at cpu.transient[[[B:[0-9]+]]]
// CHECK: sluice.launch "sin" @sin on "cpu"
// CHECK-NEXT: in %{{.+}} : tensor<2xf32, #cpu> at cpu.transient[[[B]]]
// CHECK-NEXT: out tensor<2xf32, #cpu> at cpu.transient[[[A]]]
// CHECK: sluice.launch "exp_1" @exp on "cpu"
// CHECK-NEXT: in %{{.+}} : tensor<2xf32, #cpu> at cpu.transient[[[A]]]
// CHECK-NEXT: out tensor<2xf32, #cpu> at cpu.transient[[[B]]]
module {
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %a = sluice.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %b = sluice.sin %a : (tensor<2xf32>) -> tensor<2xf32>
    %c = sluice.exp %b : (tensor<2xf32>) -> tensor<2xf32>
    sluice.output "y", %c : tensor<2xf32>
  }
}

// RUN: sluice-opt %s --sluice-build-entry-points --sluice-place-values --sluice-isolate-ops --sluice-prepare-kernels --sluice-schedule-actions --sluice-plan-memory | FileCheck %s

// Tests that the input and the output of a functional model, which are memory of the caller, lie after all other bytes
// and share them with no value. The values between them need two buffers of 256 bytes.
// CHECK: sluice.receive %x : tensor<64xf32, #cpu> at cpu.transient[512]
// CHECK: sluice.launch "relu"
// CHECK-NEXT: in %x : tensor<64xf32, #cpu> at cpu.transient[512]
// CHECK-NEXT: out tensor<64xf32, #cpu> at cpu.transient[0]
// CHECK: sluice.launch "exp"
// CHECK-NEXT: in %{{.+}} : tensor<64xf32, #cpu> at cpu.transient[0]
// CHECK-NEXT: out tensor<64xf32, #cpu> at cpu.transient[256]
// CHECK: sluice.launch "tanh"
// CHECK-NEXT: in %{{.+}} : tensor<64xf32, #cpu> at cpu.transient[256]
// CHECK-NEXT: out tensor<64xf32, #cpu> at cpu.transient[768]
// CHECK: sluice.return {{.*}} slots [#sluice.slot<cpu.transient[768]>]
module {
  sluice.model "model" format 2 phase "model" functional
  sluice.graph ["x"] (%x: tensor<64xf32>) {
    %a = sluice.relu %x : (tensor<64xf32>) -> tensor<64xf32>
    %b = sluice.exp %a : (tensor<64xf32>) -> tensor<64xf32>
    %c = sluice.tanh %b : (tensor<64xf32>) -> tensor<64xf32>
    sluice.output "y", %c : tensor<64xf32>
  }
}

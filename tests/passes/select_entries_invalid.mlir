// RUN: sluice-opt %s --split-input-file --sluice-build-entry-points --verify-diagnostics

module {
  sluice.model "model" format 2 phase "model" entries ["train_step"]
  // expected-error @+1 {{has no entry point 'train_step' to select; it has predict}}
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    sluice.output "y", %x : tensor<2xf32>
  }
}

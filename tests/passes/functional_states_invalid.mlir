// RUN: sluice-opt %s --split-input-file --verify-diagnostics --sluice-build-entry-points --sluice-functional-states

// Tests that a functional model has one replica, and that only functional models select `init`.

module {
  // expected-error@+1 {{cannot be functional with several replicas, microbatches or logical shards}}
  sluice.model "model" format 2 phase "model" capacity 4 functional replicas 2
  sluice.graph ["x"] (%x: tensor<?xf32>) {
    sluice.output "y", %x : tensor<?xf32>
  }
}

// -----

module {
  sluice.model "model" format 2 phase "model" entries ["init"]
  // expected-error@+1 {{has no entry point 'init' to select; it has predict}}
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    sluice.output "y", %x : tensor<3xf32>
  }
}

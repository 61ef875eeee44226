// RUN: sluice-opt %s --split-input-file --verify-diagnostics --sluice-shard-optimizer

// Tests that an update which needs all of a slot is an error at what needs it.
module {
  sluice.model "m" format 1 phase "train" replicas 2 zero 1
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64>
  sluice.state slot @m : tensor<4xf32> = <"constant", 0.0 : f64> of @w
  sluice.entry @train_step ["x"] -> [] (%x: tensor<4xf32>) {
    %w = sluice.get @w : tensor<4xf32>
    %m = sluice.get @m : tensor<4xf32>
    %g = sluice.all_reduce sum %x : (tensor<4xf32>) -> tensor<4xf32>
    %n = sluice.add %m, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{'sluice.sum' needs all of 'm', of which --zero 1 leaves each replica a shard: its update is not elementwise}}
    %norm = sluice.sum %n {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    %e = sluice.expand %norm {dims = array<i64>, shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
    %v = sluice.sub %w, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sluice.set @w, %v : tensor<4xf32>
    sluice.set @m, %n : tensor<4xf32>
    sluice.return
  }
}

// -----

// Tests that there must be something to share out.
// expected-error @+1 {{the optimizer keeps nothing for its parameters that --zero 1 could share out}}
module {
  sluice.model "m" format 1 phase "train" replicas 2 zero 1
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64>
}

// -----

// Tests that the name of a replica's number is taken.
module {
  sluice.model "m" format 1 phase "train" replicas 2 zero 1
  // expected-error @+1 {{'replica' is the name of a replica's number; call it otherwise}}
  sluice.state parameter @replica : tensor<4xf32> = <"constant", 1.0 : f64>
}

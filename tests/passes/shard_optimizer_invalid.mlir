// RUN: sluice-opt %s --split-input-file --verify-diagnostics --sluice-shard-optimizer

// Tests that an update that needs a whole slot is an error at the op that reads it.
module {
  sluice.model "m" format 2 phase "train" replicas 2 zero 1
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64>
  sluice.state slot @m : tensor<4xf32> = <"constant", 0.0 : f64> of @w
  sluice.entry @train_step ["x"] -> [] (%x: tensor<4xf32>) {
    %w = sluice.get @w : tensor<4xf32>
    %m = sluice.get @m : tensor<4xf32>
    %g = sluice.all_reduce sum %x : (tensor<4xf32>) -> tensor<4xf32>
    %n = sluice.add %m, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{cannot shard the optimizer state (--zero 1): 'sluice.sum' reads all of 'm', so the update is not elementwise; use --zero 0}}
    %norm = sluice.sum %n {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    %e = sluice.expand %norm {dims = array<i64>, shape = array<i64: 4>} : (tensor<f32>) -> tensor<4xf32>
    %v = sluice.sub %w, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    sluice.set @w, %v : tensor<4xf32>
    sluice.set @m, %n : tensor<4xf32>
    sluice.return
  }
}

// -----

// Tests that there must be a slot to shard.
// expected-error @+1 {{cannot shard the optimizer state (--zero 1): this optimizer keeps none; use --zero 0}}
module {
  sluice.model "m" format 2 phase "train" replicas 2 zero 1
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64>
}

// -----

// Tests that the name of a replica's number is reserved.
module {
  sluice.model "m" format 2 phase "train" replicas 2 zero 1
  // expected-error @+1 {{'replica' is reserved for a replica's number; choose another name}}
  sluice.state parameter @replica : tensor<4xf32> = <"constant", 1.0 : f64>
}

// -----

// Tests that the number of shards is the number of replicas, and that shards are vectors.
module {
  sluice.model "m" format 2 phase "parallel" replicas 2
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<6xf32>) {
    // expected-error @+1 {{has 3 shards, and there are 2 replicas}}
    %y = sluice.reduce_scatter sum %x in 3 : (tensor<6xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

module {
  sluice.model "m" format 2 phase "parallel" replicas 2
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<7xf32>) {
    // expected-error @+2 {{there are no 2 shards of 7 elements}}
    // expected-error @+1 {{failed to infer returned types}}
    %y = sluice.reduce_scatter sum %x in 2 : (tensor<7xf32>) -> tensor<3xf32>
    sluice.return %y : tensor<3xf32>
  }
}

// -----

module {
  sluice.model "m" format 2 phase "parallel" replicas 2
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<2x2xf32>) {
    // expected-error @+2 {{shards are of a vector, not of [2, 2]}}
    // expected-error @+1 {{failed to infer returned types}}
    %y = sluice.all_gather %x in 2 : (tensor<2x2xf32>) -> tensor<4x2xf32>
    sluice.return %y : tensor<4x2xf32>
  }
}

// -----

// Tests that an action on shards moves one value.
module {
  sluice.model "m" format 2 phase "scheduled" replicas 2
  sluice.queue "cpu" on "cpu"
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<6xf32, #sluice.at<device = "cpu">>) {
    // expected-error @+1 {{has no shards like these}}
    %y, %done = sluice.communicate "x" reduce_scatter sum on "cpu"
        in %x : tensor<6xf32, #sluice.at<device = "cpu">>
        out tensor<2xf32, #sluice.at<device = "cpu">>
    sluice.return %y : tensor<2xf32, #sluice.at<device = "cpu">>
  }
}

// -----

// Tests that only slots are stored in shards.
module {
  sluice.model "m" format 2 phase "parallel" replicas 2
  // expected-error @+1 {{is no slot, and is kept in shards}}
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64> shards 2
}

// -----

module {
  sluice.model "m" format 2 phase "parallel" replicas 2
  sluice.state parameter @w : tensor<4xf32> = <"constant", 1.0 : f64>
  // expected-error @+1 {{has 3 shards, and there are 2 replicas}}
  sluice.state slot @m : tensor<4xf32> = <"constant", 0.0 : f64> of @w shards 3
}

// -----

// expected-error @+1 {{zero must be 0, or 1 where replicas are several, but is 1}}
sluice.model "m" format 2 phase "model" zero 1

// RUN: sluice-opt %s --split-input-file --verify-diagnostics --sluice-partition-rows --sluice-cut-microbatches

sluice.model "m" format 2 phase "train" capacity 10 microbatches 2
sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?xf32>) {
  // expected-error @+1 {{needs all rows at once; leave out --accumulate and --deterministic}}
  %y = sluice.softmax %x {axis = 0 : i64} : (tensor<?xf32>) -> tensor<?xf32>
  sluice.return %y : tensor<?xf32>
}

// -----

// expected-error @+1 {{microbatches must be a number from 1 to 1024, but is 0}}
sluice.model "m" format 2 phase "train" capacity 10 microbatches 0

// -----

// expected-error @+1 {{is not followed by its parts: @p.0 is elsewhere}}
sluice.parts @p ["x"] -> [] = each @p.0
sluice.entry @init [] -> [] () {
  sluice.return
}
sluice.entry @p.0 ["x"] -> [] (%x: tensor<?xf32>) {
  sluice.return
}

// -----

sluice.parts @p ["x"] -> [] = once @p.0
// expected-error @+1 {{is done once a call and takes rows: x}}
sluice.entry @p.0 ["x"] -> [] (%x: tensor<?xf32>) {
  sluice.return
}

// -----

sluice.parts @p ["x"] -> ["y"] = each @p.0, once @p.1
// expected-error @+1 {{gives y, which is of the last part}}
sluice.entry @p.0 ["x"] -> ["y"] (%x: tensor<?xf32>) {
  %y = sluice.full {type = tensor<f32>, value = 1.0 : f64} : () -> tensor<f32>
  sluice.return %y : tensor<f32>
}
sluice.entry @p.1 [] -> [] () {
  sluice.return
}

// -----

// expected-error @+1 {{has an output that no part gives: y}}
sluice.parts @p ["x"] -> ["y"] = each @p.0
sluice.entry @p.0 ["x"] -> [] (%x: tensor<?xf32>) {
  sluice.return
}

// -----

// expected-error @+1 {{begins with neither 0 nor the least of its type}}
sluice.state accumulator @a : tensor<f32> = <"constant", 1.0 : f64>

// -----

// expected-error @+1 {{the number of logical shards must be a power of two from 1 to 1024, but is 6}}
sluice.model "m" format 2 phase "train" capacity 10 logical_shards 6

// -----

// expected-error @+1 {{cannot divide 8 logical shards equally among 3 replicas; the number of replicas must divide the number of shards}}
sluice.model "m" format 2 phase "train" capacity 10 replicas 3 logical_shards 8

// -----

// expected-error @+1 {{logical shards need a fixed number of replicas, not one replica per launched process}}
sluice.model "m" format 2 phase "train" capacity 10 replicas 0 logical_shards 8


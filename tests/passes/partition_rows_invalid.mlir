// RUN: sluice-opt %s --split-input-file --verify-diagnostics --sluice-partition-rows

// Tests that the error for an op that needs all rows at once names the op and its line.
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    // expected-error @+1 {{cannot split the rows of a call over replicas: 'sluice.softmax' of tensor<?x2xf32> needs all rows at once; leave out --replicas}}
    %y = sluice.softmax %x {axis = 0 : i64} : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.return %y : tensor<?x2xf32>
  }
}

// -----

// Tests that the error for values that no backend can exchange names them.
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x2xui8>) {
    // expected-error @+1 {{cannot split the rows of a call over replicas: 'sluice.sum' gives each replica a part of 'tensor<2xui8>', and values of 'ui8' cannot be added; cast them to a number type before}}
    %y = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xui8>) -> tensor<2xui8>
    sluice.return %y : tensor<2xui8>
  }
}

// -----

// Tests that a state cannot have the reserved name of the number of all rows.
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  // expected-error @+1 {{'global_rows' is reserved for the rows of all replicas; choose another name}}
  sluice.state parameter @global_rows : tensor<3xf32> = <"constant", 1.0 : f64>
}

// -----

// Tests that a state cannot have the reserved name of a replica's first row, if rows are numbered.
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  // expected-error @+1 {{'first_row' is reserved for the first row of a replica; choose another name}}
  sluice.state parameter @first_row : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["key"] -> ["y"] (%key: tensor<2xi32>) {
    %y = sluice.bernoulli %key {p = 0.5 : f64, stream = 1 : i64, type = tensor<?x2xi1>} : (tensor<2xi32>) -> tensor<?x2xi1>
    sluice.return %y : tensor<?x2xi1>
  }
}

// -----

// Tests that the root of a broadcast is an existing replica, and that rows are not exchanged.
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    // expected-error @+1 {{is from replica 2 of 2}}
    %y = sluice.broadcast from 2 %x : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x2xf32>) {
    // expected-error @+1 {{is of a value with rows, [?, 2]}}
    %y = sluice.all_reduce sum %x : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.return %y : tensor<?x2xf32>
  }
}

// -----

module {
  // expected-error @+1 {{replicas must be a number from 1 to 1024, or 0 for as many as are launched, but is 1025}}
  sluice.model "m" format 2 phase "train" capacity 10 replicas 1025
}

// -----

module {
  // expected-error @+1 {{has a batch of 9 rows, which 2 replicas of 4 rows do not hold}}
  sluice.model "m" format 2 phase "parallel" capacity 4 replicas 2 batch 9
}

// -----

// Tests that an op in a loop that needs a whole sum over rows is an error: this sum has another initial value.
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @predict ["x", "s"] -> ["y"] (%x: tensor<?x2xf32>, %s: tensor<2xf32>) {
    %y = sluice.loop "sums" 3 times (%a = %s : tensor<2xf32>) {
      %t = sluice.sum %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
      // expected-error @+1 {{cannot split the rows of a call over replicas: 'sluice.add' in loop 'sums' reads a sum over all rows, which is complete only after it; compute the sum outside}}
      %n = sluice.add %a, %t : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      sluice.next %n : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that a branch rejects a value that is neither a sum over rows nor batched. The message uses the user's terms.
module {
  sluice.model "m" format 2 phase "train" capacity 10 replicas 2
  sluice.entry @predict ["x", "p"] -> ["y"] (%x: tensor<?x2xf32>, %p: tensor<i1>) {
    %z = sluice.full {value = 0.0 : f64, type = tensor<2xf32>} : () -> tensor<2xf32>
    %y = sluice.loop "then" 1 times (%a = %z : tensor<2xf32>) if %p : tensor<i1> {
      // expected-error @+1 {{cannot split the rows of a call over replicas: 'sluice.reduce_max' in a branch of cond reduces them, and only sums over rows are possible there; compute it outside}}
      %t = sluice.reduce_max %x {axes = array<i64: 0>} : (tensor<?x2xf32>) -> tensor<2xf32>
      sluice.next %t : tensor<2xf32>
    }
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that batch norm is rejected if each replica has one row, and so one value per channel.
module {
  sluice.model "m" format 2 phase "train" capacity 2 replicas 2 least_training_rows 2
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.entry @train_step ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3xf32>
    // expected-error @+1 {{cannot train batch normalization of [?, 3] with up to 1 row: each channel has one value, which has no variance}}
    %y:3 = sluice.batch_norm %x, %w, %w, %w, %w {training} : (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>)
    sluice.return %y#0 : tensor<?x3xf32>
  }
}

// RUN: sluice-opt %s --split-input-file --verify-diagnostics --sluice-build-entry-points

// Tests the errors of invalid gradients, and of states that mirror no valid state.

module {
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    // expected-error@+1 {{is of a loss that is no scalar: 'tensor<3xf32>'}}
    %g = sluice.gradient %x by %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  }
}

// -----

module {
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %loss = sluice.sum %x {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{is by no value}}
    "sluice.gradient"(%loss) : (tensor<f32>) -> ()
  }
}

// -----

module {
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %loss = sluice.sum %x {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{is by 1 values and gives 2}}
    %g:2 = sluice.gradient %loss by %x : (tensor<f32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  }
}

// -----

module {
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %loss = sluice.sum %x {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{by 'tensor<3xf32>' cannot be 'tensor<2xf32>'}}
    %g = sluice.gradient %loss by %x : (tensor<f32>, tensor<3xf32>) -> tensor<2xf32>
  }
}

// -----

module {
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %loss = sluice.sum %x {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %i = sluice.cast %x {to = i32} : (tensor<3xf32>) -> tensor<3xi32>
    // expected-error@+1 {{operand #1 must be}}
    %g = sluice.gradient %loss by %i : (tensor<f32>, tensor<3xi32>) -> tensor<3xi32>
  }
}

// -----

module {
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %s = sluice.stop_gradient %x : (tensor<3xf32>) -> tensor<3xf32>
    %loss = sluice.sum %s {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{the loss does not depend on value 2 of those that it is differentiated by, 'tensor<3xf32>'}}
    %g:2 = sluice.gradient %loss by %s, %x : (tensor<f32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
    sluice.output "g", %g#1 : tensor<3xf32>
  }
}

// -----

module {
  // expected-error@+1 {{begins like no state before it: @v}}
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64> like @v
  sluice.state parameter @v : tensor<3xf32> = <"constant", 1.0 : f64>
}

// -----

module {
  sluice.state parameter @v : tensor<3xf32> = <"constant", 1.0 : f64>
  // expected-error@+1 {{begins like @v, which is another type or begins otherwise}}
  sluice.state parameter @w : tensor<3xf32> = <"constant", 2.0 : f64> like @v
}

// -----

module {
  sluice.state parameter @v : tensor<3xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @w : tensor<3xf32> = <"constant", 1.0 : f64> like @v
  // expected-error@+1 {{begins like no state before it: @w}}
  sluice.state parameter @u : tensor<3xf32> = <"constant", 1.0 : f64> like @w
}

// -----

module {
  sluice.graph ["x"] (%x: tensor<3xf32>) {
    %y = sluice.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    %z = sluice.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    // expected-error@+1 {{operand 2 must be an input of the graph}}
    %s = sluice.saved %y, %z : tensor<3xf32>
  }
}

// -----

module {
  sluice.graph ["x", "given"] (%x: tensor<3xf32>, %given: tensor<3xf32>) {
    %y = sluice.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    %s = sluice.saved %y, %given : tensor<3xf32>
    %loss = sluice.sum %s {axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    // expected-error@+1 {{the loss does not depend on value 1 of those that it is differentiated by, 'tensor<3xf32>'}}
    %g = sluice.gradient %loss by %given : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
    sluice.output "g", %g : tensor<3xf32>
  }
}

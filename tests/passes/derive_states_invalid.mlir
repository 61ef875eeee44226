// RUN: sluice-opt %s --split-input-file --verify-diagnostics

module {
  // expected-error @+1 {{is derived, but has no sources}}
  sluice.state derived @d : tensor<2xf32> = <"constant", 0.0 : f64>
}

// -----

module {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 0.0 : f64>
  // expected-error @+1 {{has sources, but is not derived}}
  sluice.state parameter @v : tensor<2xf32> = <"constant", 0.0 : f64> from [@w]
}

// -----

module {
  // expected-error @+1 {{has the source @w, which is no state}}
  sluice.state derived @d : tensor<2xf32> = <"constant", 0.0 : f64> from [@w]
}

// -----

module {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.state derived @d : tensor<2xf32> = <"constant", 0.0 : f64> from [@w]
  // expected-error @+1 {{has the source @d, which is derived}}
  sluice.state derived @e : tensor<2xf32> = <"constant", 0.0 : f64> from [@d]
}

// -----

module {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 0.0 : f64>
  // expected-error @+1 {{is derived, so its initial value must be zero}}
  sluice.state derived @d : tensor<2xf32> = <"constant", 1.0 : f64> from [@w]
}

// -----

module {
  sluice.state parameter @w : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.state derived @d : tensor<2xf32> = <"constant", 0.0 : f64> from [@w]
  sluice.entry @step ["x"] -> [] (%x: tensor<2xf32>) {
    // expected-error @+1 {{sets a derived state outside of an entry point without inputs and outputs: @d}}
    sluice.set @d, %x : tensor<2xf32>
    sluice.return
  }
}

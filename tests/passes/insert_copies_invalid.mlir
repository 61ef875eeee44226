// RUN: sluice-opt %s --split-input-file --sluice-place-values --verify-diagnostics

// Tests that an unwritten copy is an error by default, which names the op, both devices and the bytes, and notes the
// producer of the value.
module {
  sluice.model "model" format 2 phase "model" capacity 4
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<?x3xf32>) {
    // expected-note @+1 {{the value on gpu(0) is made here}}
    %a = sluice.exp %x {sluice.pin = "acc0"} : (tensor<?x3xf32>) -> tensor<?x3xf32>
    // expected-error @+1 {{'sluice.relu' runs on cpu and reads a value on gpu(0): 48 bytes (12 a row) would be copied; write the copy with to(), or compile with --copies=insert}}
    %y = sluice.relu %a : (tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.return %y : tensor<?x3xf32>
  }
}

// -----

// Tests that the policy can be a warning.
module {
  sluice.model "model" format 2 phase "model" copies warn
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    // expected-note @+1 {{the value on gpu(0) is made here}}
    %a = sluice.exp %x {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    // expected-warning @+1 {{'sluice.relu' runs on cpu and reads a value on gpu(0): 8 bytes are copied}}
    %y = sluice.relu %a : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that an op reading a parameter of another device needs permission too.
module {
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "sim" 0
  sluice.state parameter @w : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.entry @predict [] -> ["y"] () {
    // expected-note @+1 {{the value on cpu is made here}}
    %w = sluice.get @w : tensor<2xf32>
    // expected-error @+1 {{'sluice.exp' runs on gpu(0) and reads a value on cpu: 8 bytes would be copied}}
    %y = sluice.exp %w {sluice.pin = "acc0"} : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

// -----

// Tests that a pin to a device that the target lacks is rejected.
module {
  sluice.entry @predict ["x"] -> ["y"] (%x: tensor<2xf32>) {
    // expected-error @+1 {{unsupported: 'sluice.exp' is to run on gpu(1), which is no device of the target cpu}}
    %y = sluice.exp %x {sluice.pin = "acc1"} : (tensor<2xf32>) -> tensor<2xf32>
    sluice.return %y : tensor<2xf32>
  }
}

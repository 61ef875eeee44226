// RUN: sluice-opt %s --split-input-file --verify-diagnostics

sluice.graph ["x"] (%x: tensor<?x4xf32>) {
  // expected-error @+1 {{expected sizes of type i64, found 'i32'}}
  %0 = sluice.reshape %x {shape = array<i32: 1, 2, 2>} : (tensor<?x4xf32>) -> tensor<?x2x2xf32>
}

// -----

sluice.graph ["x"] (%x: tensor<?x4xf32>) {
  // expected-error @+1 {{attribute 'shape' occurs twice}}
  %0 = sluice.reshape %x {shape = array<i64: ?, 4>, shape = array<i64: ?, 4>} : (tensor<?x4xf32>) -> tensor<?x4xf32>
}

// -----

sluice.graph ["x"] (%x: tensor<?x4xf32>) {
  // expected-error @+1 {{expected a size}}
  %0 = sluice.reshape %x {shape = array<i64: ?, *>} : (tensor<?x4xf32>) -> tensor<?x4xf32>
}

// -----

sluice.graph ["x"] (%x: tensor<?x4xf32>) {
  // expected-error @+1 {{integer value too large}}
  %0 = sluice.reshape %x {shape = array<i64: ?, 9223372036854775808>} : (tensor<?x4xf32>) -> tensor<?x4xf32>
}

// RUN: sluice-opt %s --split-input-file --sluice-mix-precision | FileCheck %s --check-prefix=GRAPH
// RUN: sluice-opt %s --split-input-file --sluice-mix-precision --sluice-build-entry-points --sluice-expand-composites --sluice-simplify | FileCheck %s

// Tests that a product, its bias and the following ops are computed in bf16, and the loss in f32. A weight is cast
// once, for the product and its gradient, a bias before it is broadcast. Gradients are f32 before the update.
// GRAPH: sluice.graph ["x", "label"] (%[[X:.+]]: tensor<?x3xf32>,
// GRAPH-DAG: %[[X16:.+]] = sluice.cast %[[X]] {to = bf16}
// GRAPH-DAG: %[[W16:.+]] = sluice.cast %w {to = bf16}
// GRAPH-DAG: %[[B16:.+]] = sluice.cast %b {to = bf16}
// GRAPH-DAG: %[[P:.+]] = sluice.einsum "ab,bc->ac" %[[X16]], %[[W16]] {{.*}} -> tensor<?x2xbf16>
// GRAPH-DAG: %[[BS:.+]] = sluice.expand %[[B16]] {{.*}} -> tensor<?x2xbf16>
// GRAPH: %[[S:.+]] = sluice.add %[[P]], %[[BS]]
// GRAPH: %[[Y:.+]] = sluice.relu %[[S]] {{.*}} -> tensor<?x2xbf16>
// GRAPH: %[[WIDE:.+]] = sluice.cast %[[Y]] {to = f32}
// GRAPH: sluice.softmax_cross_entropy %[[WIDE]], {{.*}} -> tensor<?xf32>
// GRAPH: sluice.output "y", %[[WIDE]] : tensor<?x2xf32>

// CHECK: sluice.state parameter @w : tensor<3x2xf32>
// CHECK: sluice.entry @train_step ["x", "label"] -> ["loss"] (%[[X:.+]]: tensor<?x3xf32>,
// CHECK: %[[W16:.+]] = sluice.cast %w {to = bf16}
// CHECK-NOT: sluice.cast %w
// CHECK: %[[G:.+]] = sluice.einsum {{.*}} -> tensor<3x2xbf16>
// CHECK: %[[WIDE:.+]] = sluice.cast %[[G]] {to = f32}
// CHECK: %[[STEP:.+]] = sluice.mul {{.*}}, %[[WIDE]] {{.*}} -> tensor<3x2xf32>
// CHECK: sluice.sub %w, %[[STEP]]
// CHECK: sluice.entry @predict ["x"] -> ["y"]
// CHECK: sluice.relu {{.*}} -> tensor<?x2xbf16>
// CHECK: sluice.return {{.*}} : tensor<?x2xf32>
module {
  sluice.model "dense" format 2 phase "model" capacity 4 precision bf16
  sluice.state parameter @w : tensor<3x2xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state parameter @b : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x", "label"] (%x: tensor<?x3xf32>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %b = sluice.get @b : tensor<2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %bs = sluice.expand %b {dims = array<i64: 1>, shape = array<i64: ?, 2>} : (tensor<2xf32>) -> tensor<?x2xf32>
    %s = sluice.add %p, %bs : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %y = sluice.relu %s : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %e = sluice.softmax_cross_entropy %y, %label : (tensor<?x2xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %e {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.output "y", %y : tensor<?x2xf32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// Tests that a norm computes its statistics in f32 and returns bf16, that a shortcut may be added to it in bf16, and
// that redundant casts are removed: the second product reads the sum directly.
// GRAPH: %[[Y:.+]], %[[MEAN:.+]], %{{.+}} = sluice.batch_norm {{.*}} -> (tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>)
// GRAPH: sluice.cast %[[Y]] {to = bf16}
// GRAPH: sluice.set @mean, %[[MEAN]] : tensor<2xf32>
// CHECK: sluice.entry @predict
// CHECK: %[[X:.+]] = sluice.conv2d {{.*}} -> tensor<4x2x3x3xbf16>
// CHECK: sluice.rsqrt {{.*}} -> tensor<2xf32>
// CHECK: %[[Y:.+]] = sluice.cast {{.*}} {to = bf16} : (tensor<4x2x3x3xf32>)
// CHECK: %[[SUM:.+]] = sluice.add %[[Y]], %[[X]] {{.*}} -> tensor<4x2x3x3xbf16>
// CHECK-NOT: sluice.cast %[[SUM]]
// CHECK: sluice.conv2d %[[SUM]], {{.*}} -> tensor<4x2x3x3xbf16>
module {
  sluice.model "norm" format 2 phase "model" precision bf16
  sluice.state parameter @w : tensor<2x2x1x1xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state parameter @scale : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state parameter @shift : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.state statistic @mean : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.state statistic @var : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<4x2x3x3xf32>) {
    %w = sluice.get @w : tensor<2x2x1x1xf32>
    %scale = sluice.get @scale : tensor<2xf32>
    %shift = sluice.get @shift : tensor<2xf32>
    %mean = sluice.get @mean : tensor<2xf32>
    %var = sluice.get @var : tensor<2xf32>
    %c = sluice.conv2d %x, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<4x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<4x2x3x3xf32>
    %n:3 = sluice.batch_norm %c, %scale, %shift, %mean, %var : (tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>)
    sluice.set @mean, %n#1 : tensor<2xf32>
    sluice.set @var, %n#2 : tensor<2xf32>
    %s = sluice.add %n#0, %c : (tensor<4x2x3x3xf32>, tensor<4x2x3x3xf32>) -> tensor<4x2x3x3xf32>
    %d = sluice.conv2d %s, %w {stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (tensor<4x2x3x3xf32>, tensor<2x2x1x1xf32>) -> tensor<4x2x3x3xf32>
    sluice.output "y", %d : tensor<4x2x3x3xf32>
  }
}

// -----

// Tests the ops that stay in f32: values that no product computes, a sum, an exponential, and ops with an f32 input.
// GRAPH: sluice.relu %x {{.*}} -> tensor<2x2xf32>
// GRAPH: %[[P:.+]] = sluice.einsum {{.*}} -> tensor<2x2xbf16>
// GRAPH: %[[WIDE:.+]] = sluice.cast %[[P]] {to = f32}
// GRAPH: sluice.sub %[[WIDE]], %x {{.*}} -> tensor<2x2xf32>
// GRAPH: sluice.sum %[[WIDE]] {{.*}} -> tensor<2xf32>
// GRAPH: sluice.exp %[[WIDE]] {{.*}} -> tensor<2x2xf32>
// GRAPH: sluice.tanh %[[P]] {{.*}} -> tensor<2x2xbf16>
module {
  sluice.model "wide" format 2 phase "model" precision bf16
  sluice.graph ["x"] (%x: tensor<2x2xf32>) {
    %r = sluice.relu %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %p = sluice.einsum "ab,bc->ac" %r, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %d = sluice.sub %p, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %s = sluice.sum %p {axes = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2xf32>
    %e = sluice.exp %p : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %t = sluice.tanh %p : (tensor<2x2xf32>) -> tensor<2x2xf32>
    sluice.output "d", %d : tensor<2x2xf32>
    sluice.output "s", %s : tensor<2xf32>
    sluice.output "e", %e : tensor<2x2xf32>
    sluice.output "t", %t : tensor<2x2xf32>
  }
}

// -----

// Tests that nothing changes if the model sets no precision.
// GRAPH: sluice.graph ["x"]
// GRAPH-NOT: bf16
module {
  sluice.graph ["x"] (%x: tensor<2x2xf32>) {
    %p = sluice.einsum "ab,bc->ac" %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    sluice.output "p", %p : tensor<2x2xf32>
  }
}

// -----

// Tests that products in f16 are like those in bf16, and that the loss has PyTorch's initial scale, or the model's.
// GRAPH: %[[P:.+]] = sluice.einsum {{.*}} -> tensor<2x2xf16>
// GRAPH: %[[WIDE:.+]] = sluice.cast %[[P]] {to = f32}
// GRAPH: sluice.mean %[[WIDE]]
// GRAPH: sluice.minimize {{.*}} loss_scale <init_scale = 6.553600e+04 : f64, growth_factor = 2.000000e+00 : f64, backoff_factor = 5.000000e-01 : f64, growth_interval = 2000>
module {
  sluice.model "halves" format 2 phase "model" precision f16
  sluice.state parameter @w : tensor<2x2xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<2x2xf32>) {
    %w = sluice.get @w : tensor<2x2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %loss = sluice.mean %p {axes = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}

// -----

// GRAPH: sluice.minimize {{.*}} loss_scale <init_scale = 8.000000e+00 : f64,
// GRAPH-NOT: 6.553600e+04
module {
  sluice.model "own" format 2 phase "model" precision f16
  sluice.state parameter @w : tensor<2xf32> = <"uniform", -1.0 : f64, 1.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<2xf32>) {
    %w = sluice.get @w : tensor<2xf32>
    %p = sluice.mul %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %loss = sluice.mean %p {axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] loss_scale <init_scale = 8.0 : f64, growth_factor = 2.0 : f64, backoff_factor = 0.5 : f64, growth_interval = 3> : tensor<f32>
  }
}

// -----

// Tests that a formula of counts and constants is computed in f32 and its result is cast: bf16 cannot represent the
// counts.
// GRAPH: %[[I:.+]] = sluice.iota {{.*}} -> tensor<2x2xf32>
// GRAPH: %[[SCALED:.+]] = sluice.mul %[[I]], {{.*}} -> tensor<2x2xf32>
// GRAPH: %[[BIAS:.+]] = sluice.cast %[[SCALED]] {to = bf16}
// GRAPH: sluice.add %{{.+}}, %[[BIAS]] {{.*}} -> tensor<2x2xbf16>
module {
  sluice.model "places" format 2 phase "model" precision bf16
  sluice.graph ["x"] (%x: tensor<2x2xf32>) {
    %i = sluice.iota {start = 0.0 : f64, step = 1.0 : f64, axis = 1 : i64, type = tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %slope = sluice.full {value = 0.25 : f64, type = tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %bias = sluice.mul %i, %slope : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %y = sluice.add %p, %bias : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    sluice.output "y", %y : tensor<2x2xf32>
  }
}

// -----

// Tests that a constant keeps its consumer in f32 only if f16 cannot represent the constant.
// GRAPH: %[[P:.+]] = sluice.einsum {{.*}} -> tensor<2x2xf16>
// GRAPH: %[[WIDE:.+]] = sluice.cast %[[P]] {to = f32}
// GRAPH: sluice.add %[[WIDE]], {{.*}} -> tensor<2x2xf32>
// GRAPH: sluice.add %[[P]], {{.*}} -> tensor<2x2xf16>
module {
  sluice.model "constants" format 2 phase "model" precision f16
  sluice.graph ["x"] (%x: tensor<2x2xf32>) {
    %epsilon = sluice.full {value = 1.0e-8 : f64, type = tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %half = sluice.full {value = 0.5 : f64, type = tensor<2x2xf32>} : () -> tensor<2x2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %y = sluice.add %p, %epsilon : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %z = sluice.add %p, %half : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    sluice.output "y", %y : tensor<2x2xf32>
    sluice.output "z", %z : tensor<2x2xf32>
  }
}

// -----

// Tests that a clip computes in f32 if f16 represents a bound as 0 or 1, and in f16 otherwise.
// GRAPH: %[[P:.+]] = sluice.einsum {{.*}} -> tensor<2x2xf16>
// GRAPH: %[[WIDE:.+]] = sluice.cast %[[P]] {to = f32}
// GRAPH: sluice.clip %[[WIDE]] {{.*}} -> tensor<2x2xf32>
// GRAPH: sluice.clip %[[WIDE]] {{.*}} -> tensor<2x2xf32>
// GRAPH: sluice.clip %[[P]] {{.*}} -> tensor<2x2xf16>
module {
  sluice.model "bounds" format 2 phase "model" precision f16
  sluice.graph ["x"] (%x: tensor<2x2xf32>) {
    %p = sluice.einsum "ab,bc->ac" %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %v = sluice.clip %p {min = 1.0e-8 : f64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %w = sluice.clip %p {max = 0.9999999 : f64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %y = sluice.clip %p {min = -0.7 : f64, max = 0.9 : f64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    sluice.output "v", %v : tensor<2x2xf32>
    sluice.output "w", %w : tensor<2x2xf32>
    sluice.output "y", %y : tensor<2x2xf32>
  }
}

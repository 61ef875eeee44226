module @regress {
  sluice.model "regress" format 2 phase "model" capacity 128
  sluice.device "cpu" = "cpu" 0
  sluice.state parameter @a.weight : tensor<32x96xf32> = <"uniform", -0.10206207261596575 : f64, 0.10206207261596575 : f64>
  sluice.state parameter @a.bias : tensor<32xf32> = <"uniform", -0.10206207261596577 : f64, 0.10206207261596577 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.000000e-01 : f64>
  sluice.graph ["x", "label"] (%arg0: tensor<?x96xf32>, %arg1: tensor<?x32xf32>) {
    %0 = sluice.get @a.weight : tensor<32x96xf32>
    %1 = sluice.get @a.bias : tensor<32xf32>
    %2 = sluice.einsum "ab,cb->ac" %arg0, %0 : (tensor<?x96xf32>, tensor<32x96xf32>) -> tensor<?x32xf32>
    %3 = sluice.expand %1 {dims = array<i64: 1>, shape = array<i64: ?, 32>} : (tensor<32xf32>) -> tensor<?x32xf32>
    %4 = sluice.add %2, %3 : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
    sluice.output "p", %4 : tensor<?x32xf32>
    %5 = sluice.sub %4, %arg1 : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
    %6 = sluice.square %5 : (tensor<?x32xf32>) -> tensor<?x32xf32>
    %7 = sluice.mean %6 {axes = array<i64: 0, 1>} : (tensor<?x32xf32>) -> tensor<f32>
    sluice.minimize %7, #sluice.sgd<momentum = 0.000000e+00 : f64, dampening = 0.000000e+00 : f64, weight_decay = 0.000000e+00 : f64, nesterov = false> lr @lr [@a.weight, @a.bias] : tensor<f32>
  }
}


module @regress2 {
  sluice.model "regress2" format 2 phase "model" capacity 128
  sluice.device "cpu" = "cpu" 0
  sluice.state parameter @a.weight : tensor<64x96xf32> = <"uniform", -0.10206207261596575 : f64, 0.10206207261596575 : f64>
  sluice.state parameter @b.weight : tensor<8x64xf32> = <"uniform", -0.12499999999999999 : f64, 0.12499999999999999 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 1.000000e-01 : f64>
  sluice.graph ["x", "label"] (%arg0: tensor<?x96xf32>, %arg1: tensor<?x8xf32>) {
    %0 = sluice.get @a.weight : tensor<64x96xf32>
    %1 = sluice.get @b.weight : tensor<8x64xf32>
    %2 = sluice.einsum "ab,cb->ac" %arg0, %0 : (tensor<?x96xf32>, tensor<64x96xf32>) -> tensor<?x64xf32>
    %3 = sluice.tanh %2 : (tensor<?x64xf32>) -> tensor<?x64xf32>
    %4 = sluice.einsum "ab,cb->ac" %3, %1 : (tensor<?x64xf32>, tensor<8x64xf32>) -> tensor<?x8xf32>
    sluice.output "p", %4 : tensor<?x8xf32>
    %5 = sluice.sub %4, %arg1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
    %6 = sluice.square %5 : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %7 = sluice.mean %6 {axes = array<i64: 0, 1>} : (tensor<?x8xf32>) -> tensor<f32>
    sluice.minimize %7, #sluice.sgd<momentum = 0.000000e+00 : f64, dampening = 0.000000e+00 : f64, weight_decay = 0.000000e+00 : f64, nesterov = false> lr @lr [@a.weight, @b.weight] : tensor<f32>
  }
}


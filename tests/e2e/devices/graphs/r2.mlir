module @random2 {
  sluice.model "random2" format 2 phase "model" capacity 128
  sluice.device "cpu" = "cpu" 0
  sluice.state parameter @l0.weight : tensor<16x256xf32> = <"uniform", -0.062499999999999993 : f64, 0.062499999999999993 : f64>
  sluice.state parameter @l1.weight : tensor<256x16xf32> = <"uniform", -0.24999999999999997 : f64, 0.24999999999999997 : f64>
  sluice.state parameter @l2.weight : tensor<512x256xf32> = <"uniform", -0.062499999999999993 : f64, 0.062499999999999993 : f64>
  sluice.state parameter @l3.weight : tensor<512x256xf32> = <"uniform", -0.062499999999999993 : f64, 0.062499999999999993 : f64>
  sluice.graph ["x"] (%arg0: tensor<?x256xf32>) {
    %0 = sluice.get @l0.weight : tensor<16x256xf32>
    %1 = sluice.einsum "ab,cb->ac" %arg0, %0 : (tensor<?x256xf32>, tensor<16x256xf32>) -> tensor<?x16xf32>
    %2 = sluice.tanh %1 : (tensor<?x16xf32>) -> tensor<?x16xf32>
    %3 = sluice.get @l1.weight : tensor<256x16xf32>
    %4 = sluice.einsum "ab,cb->ac" %2, %3 : (tensor<?x16xf32>, tensor<256x16xf32>) -> tensor<?x256xf32>
    %5 = sluice.relu %4 : (tensor<?x256xf32>) -> tensor<?x256xf32>
    %6 = sluice.add %5, %arg0 : (tensor<?x256xf32>, tensor<?x256xf32>) -> tensor<?x256xf32>
    %7 = sluice.get @l2.weight : tensor<512x256xf32>
    %8 = sluice.einsum "ab,cb->ac" %arg0, %7 : (tensor<?x256xf32>, tensor<512x256xf32>) -> tensor<?x512xf32>
    %9 = sluice.get @l3.weight : tensor<512x256xf32>
    %10 = sluice.einsum "ab,cb->ac" %6, %9 : (tensor<?x256xf32>, tensor<512x256xf32>) -> tensor<?x512xf32>
    %11 = sluice.tanh %10 : (tensor<?x512xf32>) -> tensor<?x512xf32>
    %12 = sluice.add %11, %8 : (tensor<?x512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    %13 = sluice.sum %12 {axes = array<i64: 1>} : (tensor<?x512xf32>) -> tensor<?xf32>
    %14 = sluice.sum %2 {axes = array<i64: 1>} : (tensor<?x16xf32>) -> tensor<?xf32>
    %15 = sluice.add %13, %14 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %16 = sluice.sum %6 {axes = array<i64: 1>} : (tensor<?x256xf32>) -> tensor<?xf32>
    %17 = sluice.add %15, %16 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    sluice.output "y", %17 : tensor<?xf32>
  }
}


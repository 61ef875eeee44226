module @random3 {
  sluice.model "random3" format 2 phase "model" capacity 128
  sluice.device "cpu" = "cpu" 0
  sluice.state parameter @l0.weight : tensor<256x256xf32> = <"uniform", -0.062499999999999993 : f64, 0.062499999999999993 : f64>
  sluice.state parameter @l1.weight : tensor<16x256xf32> = <"uniform", -0.062499999999999993 : f64, 0.062499999999999993 : f64>
  sluice.state parameter @l2.weight : tensor<64x16xf32> = <"uniform", -0.24999999999999997 : f64, 0.24999999999999997 : f64>
  sluice.state parameter @l3.weight : tensor<512x16xf32> = <"uniform", -0.24999999999999997 : f64, 0.24999999999999997 : f64>
  sluice.graph ["x"] (%arg0: tensor<?x256xf32>) {
    %0 = sluice.get @l0.weight : tensor<256x256xf32>
    %1 = sluice.einsum "ab,cb->ac" %arg0, %0 : (tensor<?x256xf32>, tensor<256x256xf32>) -> tensor<?x256xf32>
    %2 = sluice.add %1, %arg0 : (tensor<?x256xf32>, tensor<?x256xf32>) -> tensor<?x256xf32>
    %3 = sluice.get @l1.weight : tensor<16x256xf32>
    %4 = sluice.einsum "ab,cb->ac" %2, %3 : (tensor<?x256xf32>, tensor<16x256xf32>) -> tensor<?x16xf32>
    %5 = sluice.get @l2.weight : tensor<64x16xf32>
    %6 = sluice.einsum "ab,cb->ac" %4, %5 : (tensor<?x16xf32>, tensor<64x16xf32>) -> tensor<?x64xf32>
    %7 = sluice.tanh %6 : (tensor<?x64xf32>) -> tensor<?x64xf32>
    %8 = sluice.get @l3.weight : tensor<512x16xf32>
    %9 = sluice.einsum "ab,cb->ac" %4, %8 : (tensor<?x16xf32>, tensor<512x16xf32>) -> tensor<?x512xf32>
    %10 = sluice.tanh %9 : (tensor<?x512xf32>) -> tensor<?x512xf32>
    %11 = sluice.sum %10 {axes = array<i64: 1>} : (tensor<?x512xf32>) -> tensor<?xf32>
    %12 = sluice.sum %4 {axes = array<i64: 1>} : (tensor<?x16xf32>) -> tensor<?xf32>
    %13 = sluice.add %11, %12 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %14 = sluice.sum %7 {axes = array<i64: 1>} : (tensor<?x64xf32>) -> tensor<?xf32>
    %15 = sluice.add %13, %14 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    sluice.output "y", %15 : tensor<?xf32>
  }
}


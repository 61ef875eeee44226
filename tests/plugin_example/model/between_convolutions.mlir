module @between {
  sluice.model "between" format 2 phase "model" capacity 8 copies insert
  sluice.device "cpu" = "cpu" 0
  sluice.device "acc0" = "abacus" 0
  sluice.state parameter @a.weight : tensor<32x3x3x3xf32> = <"uniform", -0.19245008972987523 : f64, 0.19245008972987523 : f64>
  sluice.state parameter @a.bias : tensor<32xf32> = <"uniform", -0.19245008972987526 : f64, 0.19245008972987526 : f64>
  sluice.state parameter @b.weight : tensor<32x32x3x3xf32> = <"uniform", -0.05892556509887896 : f64, 0.05892556509887896 : f64>
  sluice.state parameter @b.bias : tensor<32xf32> = <"uniform", -0.058925565098878967 : f64, 0.058925565098878967 : f64>
  sluice.graph ["x"] (%arg0: tensor<?x3x16x16xf32>) {
    %0 = sluice.get @a.weight : tensor<32x3x3x3xf32>
    %1 = sluice.get @a.bias : tensor<32xf32>
    %2 = sluice.get @b.weight : tensor<32x32x3x3xf32>
    %3 = sluice.get @b.bias : tensor<32xf32>
    %4 = sluice.conv2d %arg0, %0 {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<?x3x16x16xf32>, tensor<32x3x3x3xf32>) -> tensor<?x32x14x14xf32>
    %5 = sluice.expand %1 {dims = array<i64: 1>, shape = array<i64: ?, 32, 14, 14>} : (tensor<32xf32>) -> tensor<?x32x14x14xf32>
    %6 = sluice.add %4, %5 : (tensor<?x32x14x14xf32>, tensor<?x32x14x14xf32>) -> tensor<?x32x14x14xf32>
    %7 = sluice.relu %6 {sluice.pin = "acc0"} : (tensor<?x32x14x14xf32>) -> tensor<?x32x14x14xf32>
    %8 = sluice.conv2d %7, %2 {dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<?x32x14x14xf32>, tensor<32x32x3x3xf32>) -> tensor<?x32x12x12xf32>
    %9 = sluice.expand %3 {dims = array<i64: 1>, shape = array<i64: ?, 32, 12, 12>} : (tensor<32xf32>) -> tensor<?x32x12x12xf32>
    %10 = sluice.add %8, %9 : (tensor<?x32x12x12xf32>, tensor<?x32x12x12xf32>) -> tensor<?x32x12x12xf32>
    sluice.output "y", %10 : tensor<?x32x12x12xf32>
  }
}

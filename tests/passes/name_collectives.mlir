// RUN: sluice-opt %s --sluice-name-collectives | FileCheck %s

// Tests that a collective is named after the nearest subject among the transitive consumers of its result: a parameter
// that is set or whose slot is set, even though clipping makes every parameter depend on each gradient; a statistic; an
// output; or nothing.
// CHECK: sluice.all_reduce sum %d of <gradient, "fc1.weight"> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: sluice.all_reduce sum %e of <gradient, "fc2.weight"> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: sluice.broadcast from 0 %m of <statistic, "bn1.running_mean"> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: sluice.all_reduce max %x of <output, "largest"> : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: sluice.all_reduce sum %x : (tensor<2xf32>) -> tensor<2xf32>
module {
  sluice.model "m" format 2 phase "train" capacity 4 replicas 2
  sluice.state parameter @fc1.weight : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state slot @fc1.weight.momentum : tensor<2xf32> = <"constant", 0.0 : f64> of @fc1.weight
  sluice.state parameter @fc2.weight : tensor<2xf32> = <"constant", 1.0 : f64>
  sluice.state statistic @bn1.running_mean : tensor<2xf32> = <"constant", 0.0 : f64>
  sluice.entry @train_step ["d", "e", "m", "x"] -> ["sum", "largest"] (%d: tensor<2xf32>, %e: tensor<2xf32>, %m: tensor<2xf32>, %x: tensor<2xf32>) {
    %w1 = sluice.get @fc1.weight : tensor<2xf32>
    %v1 = sluice.get @fc1.weight.momentum : tensor<2xf32>
    %w2 = sluice.get @fc2.weight : tensor<2xf32>
    %g1 = sluice.all_reduce sum %d : (tensor<2xf32>) -> tensor<2xf32>
    %g2 = sluice.all_reduce sum %e : (tensor<2xf32>) -> tensor<2xf32>
    %both = sluice.add %g1, %g2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %c1 = sluice.mul %g1, %both : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %c2 = sluice.mul %g2, %both : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %n2 = sluice.sub %w2, %c2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %u1 = sluice.add %v1, %c1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %n1 = sluice.sub %w1, %u1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %b = sluice.broadcast from 0 %m : (tensor<2xf32>) -> tensor<2xf32>
    %l = sluice.all_reduce max %x : (tensor<2xf32>) -> tensor<2xf32>
    %unused = sluice.all_reduce sum %x : (tensor<2xf32>) -> tensor<2xf32>
    %s = sluice.neg %both : (tensor<2xf32>) -> tensor<2xf32>
    sluice.set @fc1.weight, %n1 : tensor<2xf32>
    sluice.set @fc1.weight.momentum, %u1 : tensor<2xf32>
    sluice.set @fc2.weight, %n2 : tensor<2xf32>
    sluice.set @bn1.running_mean, %b : tensor<2xf32>
    sluice.return %s, %l : tensor<2xf32>, tensor<2xf32>
  }
}

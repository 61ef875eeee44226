// Compiles a graph in process and runs it. With an argument, runs it without rows, which is an uncaught error.
#include <sluice/compile.h>
#include <sluice/sluice.h>

#include <cstdio>

using namespace sluice;

int main(int argc, char **) {
  Graph g{"double"};
  g.set_capacity(4);
  g.output("y", g.input("x", f32, {Dim{"batch"}, 2}) * 2.0);
  Program program = compile(g);
  program.set_input("x", std::vector<float>{1, 2, 3, 4});
  program.run("predict", argc > 1 ? 0 : 2);
  for (float y : program.output<float>("y"))
    std::printf("%g ", y);
}

extern "C" int anything_else() { return 0; }

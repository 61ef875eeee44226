// Dumps the rows of an image folder. image_rows FOLDER CHANNELS HEIGHT WIDTH [SEED EPOCH] writes all pixels, then the
// labels, to standard output. On failure it prints the error and exits with its code. With a seed the images are
// augmented; with TEST_PART in the environment, they are those of the test part. Notes for users go to standard error.
#include "runtime/base/Status.h"
#include "runtime/data/OpenData.h"

#include <cstdio>
#include <cstdlib>

using namespace sluice::runtime;

static void write(Column &column, uint64_t seed, uint64_t epoch) {
  column.load();
  column.beginEpoch(seed, epoch);
  Bytes row(static_cast<size_t>(column.header().rowBytes()));
  for (int64_t number = 0; number < column.header().rows; ++number) {
    column.read(number, row);
    std::fwrite(row.data(), 1, row.size(), stdout);
  }
}

int main(int argc, char **argv) {
  Status status = guarded([&] {
    bool augments = argc > 5;
    DataPath data(argv[1], {.augments = augments});
    DataPart part = std::getenv("TEST_PART") ? DataPart::test : DataPart::train;
    Table table = data.hasParts() ? *data.part(part) : data.whole();
    for (const std::string &note : table.notes)
      std::fprintf(stderr, "%s\n", note.c_str());
    Shape size{std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4])};
    uint64_t seed = augments ? std::strtoull(argv[5], nullptr, 10) : 0,
             epoch = augments ? std::strtoull(argv[6], nullptr, 10) : 0;
    write(*table.open("image", size), seed, epoch);
    write(*table.open("label", {}), seed, epoch);
  });
  std::fprintf(stderr, "%s\n", status.message.c_str());
  return static_cast<int>(status.code);
}

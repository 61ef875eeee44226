#ifndef SLUICE_SCATTER
#define SLUICE_SCATTER
typedef unsigned long long Word;

template <class Id> static __device__ int placeOf(Id id, int places) {
  return id < 0 ? 0 : id >= places ? places - 1 : (int)id;
}

// The bytes of a row of y: one for each chunk.
template <class Its> static __device__ Byte *bytesOf(Byte *firsts, Index place) {
  return firsts + place * (Its::words * (Index)sizeof(Word));
}

template <class Its> static __device__ void clearChunks(Byte *firsts) {
  const Index word = (Index)blockIdx.x * Its::threads + threadIdx.x;
  if (word < (Index)Its::places * Its::words) packAt<1>((Word *)firsts + word).at[0] = 0;
}

template <class Its, class Id>
static __device__ void sumChunks(float *x, Id *ids, Byte *firsts, float *sums, Index terms) {
  __shared__ int placesOfChunk[Its::chunk];
  const Index chunk = blockIdx.x / Its::chunk;
  const int its = (int)(blockIdx.x % Its::chunk);
  const int count = terms - chunk * Its::chunk < Its::chunk ? (int)(terms - chunk * Its::chunk) : Its::chunk;
  for (int term = (int)threadIdx.x; term < count; term += Its::threads)
    placesOfChunk[term] = placeOf(ids[chunk * Its::chunk + term], Its::places);
  __syncthreads();
  const int place = placesOfChunk[its];
  for (int term = 0; term < its; ++term)
    if (placesOfChunk[term] == place) return;
  bool hasMore = false;
  for (int term = its + 1; term < count; ++term)
    hasMore |= placesOfChunk[term] == place;
  if (threadIdx.x == 0) bytesOf<Its>(firsts, place)[chunk] = (Byte)(its + 1 + (hasMore ? 128 : 0));
  if (!hasMore) return;
  for (int column = (int)threadIdx.x * Its::pack; column < Its::columns; column += Its::threads * Its::pack) {
    float *from = x + chunk * Its::chunk * Its::columns + column;
    Pack<float, Its::pack> sum = packAt<Its::pack>(from + its * Its::columns);
    for (int term = its + 1; term < count; ++term)
      if (placesOfChunk[term] == place) {
        const Pack<float, Its::pack> one = packAt<Its::pack>(from + term * Its::columns);
        EACH(Its::pack) sum.at[l] += one.at[l];
      }
    packAt<Its::pack>(sums + (chunk * Its::chunk + its) * Its::columns + column) = sum;
  }
}

template <class Its> static __device__ void sumPlaces(float *x, Byte *firsts, float *sums, float *y) {
  Word *words = (Word *)bytesOf<Its>(firsts, blockIdx.x);
  for (int column = (int)threadIdx.x * Its::pack; column < Its::columns; column += Its::threads * Its::pack) {
    Pack<float, Its::pack> sum;
    EACH(Its::pack) sum.at[l] = 0;
    for (int word = 0; word < Its::words; ++word) {
      const Word held = words[word];
      if (held == 0) continue;
      for (int i = 0; i < (int)sizeof(Word); ++i) {
        const int first = (int)(held >> 8 * i & 255);
        if (first == 0) continue;
        const Index chunk = word * (int)sizeof(Word) + i, term = chunk * Its::chunk + (first & 127) - 1;
        const Pack<float, Its::pack> one = packAt<Its::pack>((first & 128 ? sums : x) + term * Its::columns + column);
        EACH(Its::pack) sum.at[l] += one.at[l];
      }
    }
    packAt<Its::pack>(y + (Index)blockIdx.x * Its::columns + column) = sum;
  }
}
#endif

#ifndef SLUICE_ATTENTION
#define SLUICE_ATTENTION
#define UNROLLED _Pragma("unroll")

template <class Half> static __device__ void multiplyPairs(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);
template <> __device__ void multiplyPairs<BF16>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  multiplyBF16(c[0], c[1], c[2], c[3], a, b0, b1);
}
template <> __device__ void multiplyPairs<F16>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  multiplyF16(c[0], c[1], c[2], c[3], a, b0, b1);
}

template <class Half> struct HalfCores {
  typedef Half Term;
  static __device__ float termOf(float x) { return x; }

  // Four matrices of B are two adjacent fragments.
  template <int fragments, int depth, int stride>
  static __device__ void addByRows(float (&sums)[fragments][4], const Half *a, const Half *b) {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int from = 0; from < depth; from += 16) {
      unsigned aPart[4], bPart[4];
      loadMatrices<false>(aPart, a + lane % 16 * stride + from + lane / 16 * 8);
      UNROLLED for (int j = 0; j < fragments; j += 2) {
        loadMatrices<false>(bPart, b + (j * 8 + lane / 16 * 8 + lane % 8) * stride + from + lane / 8 % 2 * 8);
        multiplyPairs<Half>(sums[j], aPart, bPart[0], bPart[1]);
        multiplyPairs<Half>(sums[j + 1], aPart, bPart[2], bPart[3]);
      }
    }
  }

  template <int fragments, int columns, int stride>
  static __device__ void addByColumns(float (&sums)[columns][4], const float (&held)[fragments][4], const Half *b) {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int i = 0; i < fragments; i += 2) {
      const unsigned a[4] = {pairOf<Half>(held[i][0], held[i][1]), pairOf<Half>(held[i][2], held[i][3]),
                             pairOf<Half>(held[i + 1][0], held[i + 1][1]), pairOf<Half>(held[i + 1][2], held[i + 1][3])};
      UNROLLED for (int j = 0; j < columns; j += 2) {
        unsigned bPart[4];
        loadMatrices<true>(bPart, b + (i * 8 + lane % 16) * stride + j * 8 + lane / 16 * 8);
        multiplyPairs<Half>(sums[j], a, bPart[0], bPart[1]);
        multiplyPairs<Half>(sums[j + 1], a, bPart[2], bPart[3]);
      }
    }
  }
};

struct Tf32Cores {
  typedef float Term;
  static __device__ float termOf(float x) { return roundToTf32(x); }

  template <int fragments, int depth, int stride>
  static __device__ void addByRows(float (&sums)[fragments][4], const float *a, const float *b) {
    const int group = threadIdx.x % 32 / 4, its = threadIdx.x % 4;
    UNROLLED for (int from = 0; from < depth; from += 8) {
      const float *at = a + group * stride + from + its;
      const float aPart[4] = {at[0], at[8 * stride], at[4], at[8 * stride + 4]};
      UNROLLED for (int j = 0; j < fragments; ++j) {
        const float *of = b + (j * 8 + group) * stride + from + its, bPart[2] = {of[0], of[4]};
        multiplyTf32(sums[j][0], sums[j][1], sums[j][2], sums[j][3], aPart, bPart);
      }
    }
  }

  // A lane holds adjacent terms, and a fragment needs terms 4 apart. Terms are permuted, alike in both operands.
  template <int fragments, int columns, int stride>
  static __device__ void addByColumns(float (&sums)[columns][4], const float (&held)[fragments][4], const float *b) {
    const int group = threadIdx.x % 32 / 4, its = threadIdx.x % 4;
    UNROLLED for (int i = 0; i < fragments; ++i) {
      const float a[4] = {roundToTf32(held[i][0]), roundToTf32(held[i][2]), roundToTf32(held[i][1]), roundToTf32(held[i][3])};
      UNROLLED for (int j = 0; j < columns; ++j) {
        const float *of = b + (i * 8 + its * 2) * stride + j * 8 + group, bPart[2] = {of[0], of[stride]};
        multiplyTf32(sums[j][0], sums[j][1], sums[j][2], sums[j][3], a, bPart);
      }
    }
  }
};

struct ScalarCores {
  typedef float Term;
  static __device__ float termOf(float x) { return x; }

  template <int fragments, int depth, int stride>
  static __device__ void addByRows(float (&sums)[fragments][4], float *a, float *b) {
    const int group = threadIdx.x % 32 / 4, its = threadIdx.x % 4;
    _Pragma("unroll 2") for (int from = 0; from < depth; from += 4) {
      Pack<float, 4> aPart[2];
      EACH(2) aPart[l] = packAt<4>(a + (group + l * 8) * stride + from);
      UNROLLED for (int j = 0; j < fragments; ++j)
        UNROLLED for (int one = 0; one < 2; ++one) {
          const Pack<float, 4> bPart = packAt<4>(b + (j * 8 + its * 2 + one) * stride + from);
          EACH(4) sums[j][one] = fma(aPart[0].at[l], bPart.at[l], sums[j][one]);
          EACH(4) sums[j][2 + one] = fma(aPart[1].at[l], bPart.at[l], sums[j][2 + one]);
        }
    }
  }

  template <int fragments, int columns, int stride>
  static __device__ void addByColumns(float (&sums)[columns][4], const float (&held)[fragments][4], float *b) {
    const int its = threadIdx.x % 4;
    UNROLLED for (int i = 0; i < fragments; ++i)
      UNROLLED for (int term = 0; term < 8; ++term) {
        const float above = __shfl_sync(~0u, held[i][term % 2], term / 2, 4);
        const float below = __shfl_sync(~0u, held[i][2 + term % 2], term / 2, 4);
        UNROLLED for (int j = 0; j < columns; ++j) {
          const Pack<float, 2> bPart = packAt<2>(b + (i * 8 + term) * stride + j * 8 + its * 2);
          EACH(2) sums[j][l] = fma(above, bPart.at[l], sums[j][l]);
          EACH(2) sums[j][2 + l] = fma(below, bPart.at[l], sums[j][2 + l]);
        }
      }
  }
};

// The items of a tensor [batch, heads, items, elements]; elements of an item are contiguous.
template <class T> struct Items {
  T *at;
  Index batch, head, item;
  __device__ T *of(Index itsBatch, Index itsHead) const { return at + itsBatch * batch + itsHead * head; }
};

// The value that is added to the score of a query and a key: 0 or -inf if the mask is boolean.
struct NoMask {
  static constexpr bool exists = false;
  __device__ float of(Index, Index, int, int) const { return 0; }
};
template <class T> struct Mask {
  static constexpr bool exists = true;
  T *at;
  Index batch, head, query, key;
  __device__ float of(Index itsBatch, Index itsHead, int itsQuery, int itsKey) const {
    return valueOf(at[itsBatch * batch + itsHead * head + itsQuery * query + itsKey * key]);
  }
  static __device__ float valueOf(Byte attends) { return attends ? 0 : -__int_as_float(0x7f800000); }
  static __device__ float valueOf(BF16 added) { return added; }
  static __device__ float valueOf(F16 added) { return added; }
  static __device__ float valueOf(float added) { return added; }
};

// Rows of a tile in shared memory: whole fragments, padded with zeros. Their stride avoids bank conflicts.
template <class Term, int elements> struct TileRows {
  static constexpr int depth = (elements + 15) / 16 * 16, stride = depth + 16 / (int)sizeof(Term);
};

// `rows` items in registers, between global memory and a tile in shared memory. Adjacent threads load adjacent packs.
template <class C, int rows, int elements> struct Incoming {
  typedef typename C::Cores::Term Term;
  typedef TileRows<Term, elements> Rows;
  static constexpr int atMost = 16 / (int)sizeof(Term);
  static constexpr int packed = elements % atMost == 0 ? atMost : elements % 4 == 0 ? 4 : elements % 2 == 0 ? 2 : 1;
  static constexpr int packsOfRow = Rows::depth / packed, packs = rows * packsOfRow;
  static constexpr int each = (packs + C::threads - 1) / C::threads;

  Pack<Term, packed> held[each];

  // Loads the items from `first` on, of `count` in all. If the packs of a thread are in one column, their addresses are
  // computed from that of the first.
  __device__ void load(Term *items, Index stride, int first, int count) {
    constexpr bool isColumn = C::threads % packsOfRow == 0;
    const unsigned thread = threadIdx.x;
    Term *const column = items + (first + thread / packsOfRow) * stride + thread % packsOfRow * packed;
    EACH(each) {
      const int at = thread + l * C::threads, item = first + at / packsOfRow, element = at % packsOfRow * packed;
      held[l] = {};
      if ((packs % C::threads == 0 || at < packs) && item < count && (Rows::depth == elements || element < elements))
        held[l] = packAt<packed>(isColumn ? column + l * (C::threads / packsOfRow) * stride : items + item * stride + element);
    }
  }
  __device__ void keep(Term *tile) {
    EACH(each) {
      const int at = threadIdx.x + l * C::threads;
      if constexpr (sizeof(Term) == 4) {
        UNROLLED for (int i = 0; i < packed; ++i) held[l].at[i] = C::Cores::termOf(held[l].at[i]);
      }
      if (packs % C::threads == 0 || at < packs)
        packAt<packed>(tile + at / packsOfRow * Rows::stride + at % packsOfRow * packed) = held[l];
    }
  }
};

// The work of a block: a tile of items of one head. The tiles of one head are adjacent, because they read the same keys
// or queries. Exception: if tiles are `uneven` in time, and the operands of all heads, of `bytes` each, fit in a cache,
// the longest tiles of all heads come first.
template <int tiles, int heads, bool uneven, bool lastIsLongest> struct Part {
  int tile, head;
  Index batch;
  __device__ Part(Index tasks, Index bytes) {
    const unsigned place = blockIdx.x, all = (unsigned)tasks / tiles;
    const bool byTile = uneven && all * bytes <= (32 << 20);
    const unsigned of = byTile ? place % all : place / tiles, its = byTile ? place / all : place % tiles;
    tile = lastIsLongest ? tiles - 1 - (int)its : (int)its, head = (int)(of % heads), batch = of / heads;
  }
};

// Stores the sums of the rows from `row` on, of `count` in all: scaled, and rounded once.
template <int elements, int fragments, class T>
static __device__ void storeRows(T *items, Index stride, const float (&sums)[fragments][4], int row, int count,
                                 const float (&scale)[2]) {
  UNROLLED for (int half = 0; half < 2; ++half) {
    const int item = row + threadIdx.x % 32 / 4 + half * 8;
    if (item >= count) continue;
    UNROLLED for (int j = 0; j < fragments; ++j) {
      const int element = j * 8 + threadIdx.x % 4 * 2;
      Pack<T, 2> pair;
      const float scaled[2] = {sums[j][half * 2] * scale[half], sums[j][half * 2 + 1] * scale[half]};
      fill(pair, scaled);
      if (elements % 2 == 0) {
        if (element < elements) packAt<2>(items + item * stride + element) = pair;
      } else {
        EACH(2) if (element + l < elements) items[item * stride + element + l] = pair.at[l];
      }
    }
  }
}

// Converts the scores from `row` and `column` on to exponents of two; hidden ones become -inf.
template <class C, bool rowsAreKeys, class M, int fragments>
static __device__ void finishScores(float (&scores)[fragments][4], int row, int column, const M &mask, Index batch, int head,
                                    float scale) {
  const float log2e = 0x1.715476p+0f, scaled = scale * log2e;
  const int firstQuery = rowsAreKeys ? column : row, firstKey = rowsAreKeys ? row : column;
  const int keys = rowsAreKeys ? 16 : fragments * 8;
  const bool allAreSeen = firstKey + keys <= C::keys && (!C::causal || firstKey + keys - 1 <= firstQuery);
  UNROLLED for (int j = 0; j < fragments; ++j) EACH(4) scores[j][l] = scores[j][l] * scaled;
  if (!M::exists && allAreSeen) return;
  UNROLLED for (int j = 0; j < fragments; ++j) EACH(4) {
    const int itsRow = row + threadIdx.x % 32 / 4 + l / 2 * 8, itsColumn = column + j * 8 + threadIdx.x % 4 * 2 + l % 2;
    const int query = rowsAreKeys ? itsColumn : itsRow, key = rowsAreKeys ? itsRow : itsColumn;
    if (key >= C::keys || (C::causal && key > query)) scores[j][l] = -__int_as_float(0x7f800000);
    else if (M::exists && query < C::queries) scores[j][l] = fma(mask.of(batch, head, query, key), log2e, scores[j][l]);
  }
}

static __device__ float acrossRow(float x, int by) {
  const int lane = threadIdx.x % 32;
  return __shfl_sync(~0u, x, lane ^ by, 32);
}

// softmax(q k^T) v for a tile of queries. Each row keeps, for the keys so far, the largest score, the sum of
// e^(score - largest), and the sum of e^(score - largest) * v. Null results are not stored.
template <class C, class M, class T>
static __device__ void attend(Items<T> q, Items<T> k, Items<T> v, const M &mask, Items<T> y, Items<float> logsumexp, float scale,
                              Index tasks) {
  typedef typename C::Cores Cores;
  typedef typename Cores::Term Term;
  typedef TileRows<Term, C::depth> OfKeys;
  typedef TileRows<Term, C::valueDepth> OfValues;
  constexpr int rows = C::threads / 2, tiles = (C::queries + rows - 1) / rows, fragments = C::step / 8;
  alignas(16) __shared__ Term qTile[rows * OfKeys::stride];
  alignas(16) __shared__ Term kTile[C::block * OfKeys::stride];
  alignas(16) __shared__ Term vTile[C::block * OfValues::stride];
  const Part<tiles, C::heads, C::causal, C::causal> part(tasks, (Index)C::keys * (C::depth + C::valueDepth) * sizeof(T));
  const int first = part.tile * rows, ofWarp = threadIdx.x / 32 * 16, row = first + ofWarp;
  T *keys = k.of(part.batch, part.head / C::headsOfKey), *values = v.of(part.batch, part.head / C::headsOfKey);
  Incoming<C, C::block, C::depth> nextKeys;
  Incoming<C, C::block, C::valueDepth> nextValues;
  nextKeys.load(keys, k.item, 0, C::keys), nextValues.load(values, v.item, 0, C::keys);
  {
    Incoming<C, rows, C::depth> own;
    own.load(q.of(part.batch, part.head), q.item, first, C::queries), own.keep(qTile);
  }
  const float infinity = __int_as_float(0x7f800000);
  float sums[OfValues::depth / 8][4] = {}, largest[2] = {-infinity, -infinity}, total[2] = {};
  const int end = C::causal && first + rows < C::keys ? first + rows : C::keys;
  _Pragma("unroll 1") for (int begin = 0; begin < end; begin += C::block) {
    __syncthreads();
    nextKeys.keep(kTile), nextValues.keep(vTile);
    __syncthreads();
    if (begin + C::block < end)
      nextKeys.load(keys, k.item, begin + C::block, C::keys), nextValues.load(values, v.item, begin + C::block, C::keys);
    _Pragma("unroll 1") for (int in = 0; in < C::block; in += C::step) {
      if (begin + in >= C::keys || (C::causal && begin + in > row + 15)) break;
      float scores[fragments][4] = {};
      Cores::template addByRows<fragments, OfKeys::depth, OfKeys::stride>(scores, qTile + ofWarp * OfKeys::stride,
                                                                         kTile + in * OfKeys::stride);
      finishScores<C, false>(scores, row, begin + in, mask, part.batch, part.head, scale);
      UNROLLED for (int half = 0; half < 2; ++half) {
        float most = largest[half];
        UNROLLED for (int j = 0; j < fragments; ++j) EACH(2) most = fmaxf(most, scores[j][half * 2 + l]);
        most = fmaxf(most, acrossRow(most, 1)), most = fmaxf(most, acrossRow(most, 2));
        const float shift = most == -infinity ? 0 : most, rescale = powerOfTwo(largest[half] - shift);
        largest[half] = most, total[half] *= rescale;
        UNROLLED for (int j = 0; j < OfValues::depth / 8; ++j) EACH(2) sums[j][half * 2 + l] *= rescale;
        UNROLLED for (int j = 0; j < fragments; ++j) EACH(2) {
          float &its = scores[j][half * 2 + l];
          its = powerOfTwo(its - shift), total[half] += its;
        }
      }
      Cores::template addByColumns<fragments, OfValues::depth / 8, OfValues::stride>(sums, scores, vTile + in * OfValues::stride);
    }
  }
  float inverse[2];
  EACH(2) {
    total[l] += acrossRow(total[l], 1), total[l] += acrossRow(total[l], 2);
    inverse[l] = total[l] == 0 ? 0 : 1 / total[l];
    const int query = row + threadIdx.x % 32 / 4 + l * 8;
    if (logsumexp.at && threadIdx.x % 4 == 0 && query < C::queries)
      logsumexp.of(part.batch, part.head)[query * logsumexp.item] =
          total[l] == 0 ? -infinity : fma(largest[l], 0x1.62e430p-1f, log(total[l]));
  }
  if (y.at) storeRows<C::valueDepth>(y.of(part.batch, part.head), y.item, sums, row, C::queries, inverse);
}

// Two values per query: `logsumexp` turns scores into probabilities, `delta` is subtracted from the gradients of these.
struct OfQuery {
  float logsumexp, delta;
  __device__ void load(const Items<float> &sums, const Items<float> &deltas, Index batch, int head, int query, int count) {
    logsumexp = delta = 0;
    if (query >= count) return;
    const float its = sums.of(batch, head)[query * sums.item];
    logsumexp = its == -__int_as_float(0x7f800000) ? 0 : its * 0x1.715476p+0f;
    delta = deltas.of(batch, head)[query * deltas.item];
  }
};

// With `ofKeys`: dk and dv for a tile of keys. Rows of scores are keys, columns are queries. Queries are loaded in
// blocks, one head after another of those that read the keys. Otherwise: dq for a tile of queries.
template <class C, bool ofKeys, class M, class T>
static __device__ void attentionGradients(Items<T> q, Items<T> k, Items<T> v, Items<T> dy, Items<float> logsumexp,
                                          Items<float> delta, const M &mask, Items<T> dqOrDk, Items<T> dv, float scale,
                                          Index tasks) {
  typedef typename C::Cores Cores;
  typedef typename Cores::Term Term;
  typedef TileRows<Term, C::depth> OfKeys;
  typedef TileRows<Term, C::valueDepth> OfValues;
  constexpr int rows = C::threads / 2, fragments = C::step / 8, heads = ofKeys ? C::heads / C::headsOfKey : C::heads;
  constexpr int ownCount = ofKeys ? C::keys : C::queries, count = ofKeys ? C::queries : C::keys;
  alignas(16) __shared__ Term ownTile[rows * OfKeys::stride];
  alignas(16) __shared__ Term ownValues[rows * OfValues::stride];
  alignas(16) __shared__ Term tile[C::block * OfKeys::stride];
  alignas(16) __shared__ Term values[C::block * OfValues::stride];
  __shared__ OfQuery ofColumn[ofKeys ? C::block : 1];
  const Part<(ownCount + rows - 1) / rows, heads, C::causal, C::causal && !ofKeys> part(
      tasks, (Index)count * (C::depth + C::valueDepth) * sizeof(T));
  const int first = part.tile * rows, ofWarp = threadIdx.x / 32 * 16, row = first + ofWarp;
  {
    Incoming<C, rows, C::depth> own;
    own.load((ofKeys ? k : q).of(part.batch, part.head), (ofKeys ? k : q).item, first, ownCount), own.keep(ownTile);
  }
  {
    Incoming<C, rows, C::valueDepth> own;
    own.load((ofKeys ? v : dy).of(part.batch, part.head), (ofKeys ? v : dy).item, first, ownCount), own.keep(ownValues);
  }
  OfQuery ofRow[2];
  if (!ofKeys) { EACH(2) ofRow[l].load(logsumexp, delta, part.batch, part.head, row + threadIdx.x % 32 / 4 + l * 8, C::queries); }
  // Only blocks that `causal` does not hide. With `ofKeys`, these are the queries from the first key of the tile on.
  const int start = ofKeys && C::causal ? first / C::block * C::block : 0;
  const int end = !ofKeys && C::causal && first + rows < count ? first + rows : count;
  const int blocks = start < end ? (end - start + C::block - 1) / C::block : 0, all = blocks * (ofKeys ? C::headsOfKey : 1);
  Incoming<C, C::block, C::depth> nextItems;
  Incoming<C, C::block, C::valueDepth> nextValues;
  OfQuery nextColumn;
  auto load = [&](int number) {
    const int head = ofKeys ? part.head * C::headsOfKey + number / blocks : part.head / C::headsOfKey;
    const int begin = start + number % blocks * C::block;
    nextItems.load((ofKeys ? q : k).of(part.batch, head), (ofKeys ? q : k).item, begin, count);
    nextValues.load((ofKeys ? dy : v).of(part.batch, head), (ofKeys ? dy : v).item, begin, count);
    if (ofKeys && threadIdx.x < C::block)
      nextColumn.load(logsumexp, delta, part.batch, head, begin + (int)threadIdx.x, count);
  };
  float sums[OfKeys::depth / 8][4] = {}, sumsOfValues[ofKeys ? OfValues::depth / 8 : 1][4] = {};
  if (all) load(0);
  _Pragma("unroll 1") for (int number = 0; number < all; ++number) {
    __syncthreads();
    nextItems.keep(tile), nextValues.keep(values);
    if (ofKeys && threadIdx.x < C::block) ofColumn[threadIdx.x] = nextColumn;
    __syncthreads();
    if (number + 1 < all) load(number + 1);
    const int begin = start + number % blocks * C::block, head = ofKeys ? part.head * C::headsOfKey + number / blocks : part.head;
    _Pragma("unroll 1") for (int in = 0; in < C::block; in += C::step) {
      const int column = begin + in;
      if (column >= count || (!ofKeys && C::causal && column > row + 15)) break;
      if (ofKeys && C::causal && column + C::step <= row) continue;
      float p[fragments][4] = {}, gradients[fragments][4] = {};
      Cores::template addByRows<fragments, OfKeys::depth, OfKeys::stride>(p, ownTile + ofWarp * OfKeys::stride,
                                                                         tile + in * OfKeys::stride);
      finishScores<C, ofKeys>(p, row, column, mask, part.batch, head, scale);
      Cores::template addByRows<fragments, OfValues::depth, OfValues::stride>(gradients, ownValues + ofWarp * OfValues::stride,
                                                                             values + in * OfValues::stride);
      UNROLLED for (int j = 0; j < fragments; ++j) EACH(4) {
        const OfQuery its = ofKeys ? ofColumn[in + j * 8 + threadIdx.x % 4 * 2 + l % 2] : ofRow[l / 2];
        p[j][l] = powerOfTwo(p[j][l] - its.logsumexp);
        gradients[j][l] = p[j][l] * (gradients[j][l] - its.delta);
      }
      if constexpr (ofKeys)
        Cores::template addByColumns<fragments, OfValues::depth / 8, OfValues::stride>(sumsOfValues, p,
                                                                                      values + in * OfValues::stride);
      Cores::template addByColumns<fragments, OfKeys::depth / 8, OfKeys::stride>(sums, gradients, tile + in * OfKeys::stride);
    }
  }
  const float scales[2] = {scale, scale}, ones[2] = {1, 1};
  if (dqOrDk.at) storeRows<C::depth>(dqOrDk.of(part.batch, part.head), dqOrDk.item, sums, row, ownCount, scales);
  if constexpr (ofKeys)
    if (dv.at) storeRows<C::valueDepth>(dv.of(part.batch, part.head), dv.item, sumsOfValues, row, ownCount, ones);
}
#endif

// erfinv(x) = p(w) x with w = -log((1 - x) (1 + x)). Near 0, p is a polynomial in w - center; in the tails, in sqrt(w)
// - center.
//
// The logarithms of devices differ in their last bits. Therefore the logarithm is computed with additions,
// multiplications, divisions and comparisons, which every device rounds alike: random numbers have the same bits
// everywhere.
#include "ir/ops/math/ErfInv.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace sluice::ir {

// Highest power first.
constexpr double kSingleCentral[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                     -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
constexpr double kSingleTail[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                  -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
constexpr double kDoubleCentral[] = {
    -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
    -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
    -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
    -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
    -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
constexpr double kDoubleMiddle[] = {
    2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
    1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
    -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
    0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
    0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
constexpr double kDoubleTail[] = {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
                                  -3.7894654401267369937e-09, 7.6157012080783393804e-09,  -1.4960026627149240478e-08,
                                  2.9147953450901080826e-08,  -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                                  -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
                                  7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026,
                                  1.0103004648645343977,      4.8499064014085844221};

namespace {

/// The polynomial for w < `below`.
struct Piece {
  double below, center;
  bool isOfRoot;
  ArrayRef<double> coefficients;
};

} // namespace

constexpr double kAll = std::numeric_limits<double>::infinity();

static ArrayRef<Piece> piecesOf(ErfInv precision) {
  static const Piece kSingle[] = {{5, 2.5, false, kSingleCentral}, {kAll, 3, true, kSingleTail}};
  static const Piece kDouble[] = {
      {6.25, 3.125, false, kDoubleCentral}, {16, 3.25, true, kDoubleMiddle}, {kAll, 5, true, kDoubleTail}};
  return precision == ErfInv::Single ? ArrayRef<Piece>(kSingle) : ArrayRef<Piece>(kDouble);
}

double erfinv(double x, ErfInv precision) {
  double w = -std::log((1 - x) * (1 + x)), result = 0;
  const Piece &piece = *llvm::find_if(piecesOf(precision), [&](const Piece &piece) { return w < piece.below; });
  double from = (piece.isOfRoot ? std::sqrt(w) : w) - piece.center;
  for (double coefficient : piece.coefficients)
    result = result * from + coefficient;
  return result * x;
}

static Lane evaluate(const Piece &piece, Lane w) {
  Lane from = (piece.isOfRoot ? sqrt(w) : w) - piece.center, result = from.like(piece.coefficients.front());
  for (double coefficient : piece.coefficients.drop_front())
    result = result * from + coefficient;
  return result;
}

/// log(t) for 2^-63 < t <= 1: k log(2) + log(m) for t = 2^k m with m near 1, and log(m) as a polynomial in
/// ((m - 1) / (m + 1))^2 with the coefficients of fdlibm's e_log.c and e_logf.c.
static Lane portableLog(Lane t) {
  static constexpr double kSingle[] = {0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693};
  static constexpr double kDouble[] = {1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                                       2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                                       6.666666666666735130e-01};
  bool isSingle = getElementTypeOrSelf(t.value).isF32();
  // The logarithm of 2 in two parts, the first of which has few bits, so that its product with k is exact.
  double high = isSingle ? 6.9313812256e-01 : 6.93147180369123816490e-01;
  double low = isSingle ? 9.0580006145e-06 : 1.90821492927058770002e-10;
  Lane m = t, k = t.like(0);
  for (int bits : {32, 16, 8, 4, 2, 1}) {
    double power = std::ldexp(1.0, bits);
    Lane isSmall = m < 1.41421354 / power;
    m = where(isSmall, m * power, m);
    k = where(isSmall, k - double(bits), k);
  }
  Lane f = m - 1.0, s = f / (m + 1.0), z = s * s, half = f * f * 0.5, sum = z.like(0);
  for (double coefficient : isSingle ? ArrayRef<double>(kSingle) : ArrayRef<double>(kDouble))
    sum = (sum + coefficient) * z;
  return k * high - ((half - (s * (half + sum) + k * low)) - f);
}

Lane erfinv(Lane x, ErfInv precision) {
  ArrayRef<Piece> pieces = piecesOf(precision);
  Lane w = -portableLog((1.0 - x) * (1.0 + x)), result = evaluate(pieces.back(), w);
  for (const Piece &piece : llvm::reverse(pieces.drop_back()))
    result = where(w < piece.below, evaluate(piece, w), result);
  return result * x;
}

} // namespace sluice::ir

"""Random numbers compared with another implementation of JAX's Threefry generator, in NumPy."""

import math
import statistics

import numpy as np

# The inverse error function has relative errors of a few units in the last place, of polynomials of 9 and 23 terms.
TOLERANCE = {"f32": 2e-6, "f64": 1e-14}  # relative to |number| + 1
DEVIATIONS = 5  # of a mean from the truth, in standard deviations: a right one fails in one of 10^6 cases


def threefry(key, x, y):
    """The blocks (x, y) encrypted in 20 rounds."""
    keys = [np.uint32(key[0]), np.uint32(key[1]), np.uint32(key[0]) ^ np.uint32(key[1]) ^ np.uint32(0x1BD11BDA)]
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x = x + y
            y = (y << np.uint32(rotation) | y >> np.uint32(32 - rotation)) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y


def bits(key, count):
    """JAX's threefry_random_bits_original: the counters are padded with 0 and cut into halves."""
    counters = np.pad(np.arange(count, dtype=np.uint32), (0, count % 2))
    return np.concatenate(threefry(key, *np.split(counters, 2)))[:count]


def fractions(key, count, real):
    """Numbers in [0, 1): random bits as the mantissa of a number in [1, 2), less 1."""
    if real == np.float64:
        high, low = np.split(bits(key, 2 * count).astype(np.uint64), 2)
        return ((high << np.uint64(32) | low) >> np.uint64(12) | np.uint64(0x3FF << 52)).view(real) - real(1)
    return (bits(key, count) >> np.uint32(9) | np.uint32(0x3F800000)).view(real) - real(1)


def uniform(key, count, real, low, high):
    low, high = real(low), real(high)
    return np.maximum(low, fractions(key, count, real) * (high - low) + low)


def normal(key, count, real, mean, deviation):
    """In double precision, from the uniform numbers of the dtype. sqrt(2) * erfinv(v) is the quantile of (1 + v) / 2, which
    Python computes by Wichura's algorithm; that of (1 - |v|) / 2 is exact in the tails too."""
    v = uniform(key, count, real, np.nextafter(real(-1), real(0)), 1).astype(np.float64)
    tail = [statistics.NormalDist().inv_cdf(p) for p in (1 - np.abs(v)) / 2]
    return -np.sign(v) * tail * deviation + mean


def problems_of_moments(draw, values):
    """The range, the mean and the mean square of many numbers."""
    a, b, isUniform = draw["a"], draw["b"], draw["function"] == "uniform"
    if isUniform and not (a <= values.min() and values.max() < b):
        yield f"outside of [{a}, {b})"
    mean, deviation = ((a + b) / 2, (b - a) / math.sqrt(12)) if isUniform else (a, b)
    kurtosis = 9 / 5 if isUniform else 3
    standard = (values - mean) / deviation
    if abs(standard.mean()) > DEVIATIONS / math.sqrt(values.size):
        yield f"the mean {values.mean()}, not {mean}"
    if abs((standard ** 2).mean() - 1) > DEVIATIONS * math.sqrt((kurtosis - 1) / values.size):
        yield f"the deviation {values.std()}, not {deviation}"


def problems_of_draw(draw, key, got):
    count, dtype = math.prod(draw["shape"]), draw["dtype"]
    if got.size != count:
        yield f"{got.size} elements"
        return
    real = np.float64 if dtype == "f64" else np.float32
    if draw["function"] == "normal":
        truth = normal(key, count, real, draw["a"], draw["b"])
        if not (np.abs(got - truth) <= TOLERANCE[dtype] * (np.abs(truth) + 1)).all():
            yield f"an error of {np.abs(got - truth).max()}"
    else:
        truth = bits(key, count).view(np.int32) if draw["function"] == "bits" else uniform(key, count, real, draw["a"], draw["b"])
        truth = truth.astype(np.float16) if dtype == "f16" else truth
        if not (got == truth).all():
            yield f"other numbers: {got[:4]}, not {truth[:4]}"
    if count > 10000 and not draw["function"] == "bits":
        yield from problems_of_moments(draw, got)


def problems(case):
    np.seterr(over="ignore")  # words wrap around
    if "error" in case:
        yield f"{case['name']}: {case['error']}"
        return
    values = {name: np.array(numbers) for name, numbers in case["values"].items()}
    key = np.array(case["key"], dtype=np.int32).view(np.uint32)
    keys = bits(key, 6).reshape(3, 2)
    if not (values["keys"] == keys.view(np.int32).flatten()).all():
        yield f"the key {case['key']} is split into {values['keys']}"
    if not (values["constant"] == uniform((7, 9), 5, np.float32, 0, 1)).all():
        yield f"another draw of a constant key: {values['constant']}"
    if not (values["scanned"] == np.concatenate([uniform(step, 3, np.float32, 0, 1) for step in keys])).all():
        yield f"other draws of the keys in the steps of a scan: {values['scanned']}"
    if case["key"] == [0, 0]:  # printed by jax.random.uniform(jax.random.PRNGKey(0), (2, 3))
        printed = [0.57450044, 0.09968603, 0.7419659, 0.8941783, 0.59656656, 0.45325184]
        if not (values["y3"].astype(np.float32) == np.array(printed, dtype=np.float32)).all():
            yield f"JAX draws {printed}, not {values['y3']}"
    for draw in case["draws"]:
        for problem in problems_of_draw(draw, key if draw["row"] is None else keys[draw["row"]], values[draw["name"]]):
            yield f"key {case['key']}: {draw}: {problem}"

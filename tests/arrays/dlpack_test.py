"""Exchanges arrays with NumPy and PyTorch by DLPack, in both directions: elements, addresses, writes and lifetimes.

Usage: dlpack_test.py SOURCE_ROOT BUILD_ROOT"""

import ctypes
import gc
import os
import sys
import unittest
import weakref

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import array_library  # noqa: E402: of the environment entered above
import numpy as np  # noqa: E402
import torch  # noqa: E402
from array_library import DTYPES, Failure  # noqa: E402
from torch.utils.dlpack import from_dlpack as torch_from, to_dlpack as torch_to  # noqa: E402

LIBRARY = array_library.Library(BUILD)
NUMPY = dict(f32=np.float32, f64=np.float64, i32=np.int32, i64=np.int64, u8=np.uint8, bool=np.bool_, f16=np.float16)
TORCH = dict(f32=torch.float32, f64=torch.float64, i32=torch.int32, i64=torch.int64, u8=torch.uint8, f16=torch.float16,
             bf16=torch.bfloat16)  # version 1.13 refuses to exchange bool


def aligned(shape, dtype):
    """A NumPy array of random elements in memory aligned to 64 bytes."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(count + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    array = memory[begin:begin + count].view(dtype).reshape(shape)
    array[...] = np.random.default_rng(5).integers(0, 2 if dtype == np.bool_ else 100, shape)
    return array


def bytes_of(tensor):
    """The elements of a PyTorch tensor, row-major."""
    flat = tensor.contiguous().reshape(-1)
    return (flat.view(torch.int16) if tensor.dtype == torch.bfloat16 else flat).numpy().tobytes()


class FromNumPy(unittest.TestCase):
    def test_each_dtype_shares_its_memory(self):
        for name, dtype in NUMPY.items():
            x = aligned((3, 4), dtype)
            y = LIBRARY.take(x.__dlpack__())
            self.assertEqual((y.dtype, y.shape, y.device), (name, (3, 4), "cpu()"))
            self.assertEqual(y.address(), x.ctypes.data)
            self.assertEqual(y.elements(), x.tobytes())

    def test_writes_are_seen_on_both_sides(self):
        x = aligned((5,), np.float32)
        y = LIBRARY.take(x.__dlpack__())
        x[2] = -1
        self.assertEqual(y.elements(), x.tobytes())
        y.set(np.arange(5, dtype=np.float32).tobytes())
        self.assertEqual(x.tolist(), [0, 1, 2, 3, 4])

    def test_strides_are_copied(self):
        base = aligned((4, 6), np.int32)
        zero = np.lib.stride_tricks.as_strided(base, (3, 6), (0, 4))
        for x in (base.T, base[::2], base[:, ::3], base[::-1], base[::-1, ::-2], base[1:3, 2:5], zero, base[::-1].T):
            y = LIBRARY.take(x.__dlpack__())
            self.assertEqual(y.shape, x.shape)
            self.assertEqual(y.elements(), x.tobytes())
            self.assertNotEqual(y.address(), x.ctypes.data)

    def test_any_multiple_of_the_size_of_an_element_is_shared(self):
        x = aligned((5,), np.float32)[1:]
        y = LIBRARY.take(x.__dlpack__())
        self.assertEqual(y.elements(), x.tobytes())
        self.assertEqual(y.address(), x.ctypes.data)

    def test_scalars_and_empty_arrays(self):
        for x in (aligned((), np.float64), np.zeros((0, 3), np.float32), np.zeros((2, 0), np.uint8)):
            y = LIBRARY.take(x.__dlpack__())
            self.assertEqual((y.shape, y.elements()), (x.shape, x.tobytes()))

    def test_the_source_lives_as_long_as_the_array(self):
        x = aligned((4,), np.float32)
        expected, source = x.tobytes(), weakref.ref(x)
        y = LIBRARY.take(x.__dlpack__())
        del x
        gc.collect()
        self.assertIsNotNone(source())
        self.assertEqual(y.elements(), expected)
        del y
        gc.collect()
        self.assertIsNone(source())

    def test_a_copied_source_ends_at_once(self):
        x = np.arange(8, dtype=np.float32)[::2]
        source = weakref.ref(x)
        y = LIBRARY.take(x.__dlpack__())
        del x
        gc.collect()
        self.assertIsNone(source())
        self.assertEqual(y.elements(), np.arange(0, 8, 2, dtype=np.float32).tobytes())

    def test_other_types_are_errors_that_name_them(self):
        for dtype, name in ((np.complex64, "complex64"), (np.int8, "int8"), (np.uint32, "uint32"), (np.int16, "int16")):
            capsule = np.zeros(3, dtype).__dlpack__()
            with self.assertRaises(Failure) as caught:
                LIBRARY.take(capsule)
            self.assertEqual(caught.exception.code, 2)
            self.assertIn(f"elements of {name} are not supported", caught.exception.text)


class FromPyTorch(unittest.TestCase):
    def test_each_dtype_shares_its_memory(self):
        for name, dtype in TORCH.items():
            x = torch.arange(12).reshape(3, 4).to(dtype)
            y = LIBRARY.take(torch_to(x))
            self.assertEqual((y.dtype, y.shape), (name, (3, 4)))
            self.assertEqual(y.address(), x.data_ptr())
            self.assertEqual(y.elements(), bytes_of(x))

    def test_writes_are_seen_on_both_sides(self):
        x = torch.zeros(4, dtype=torch.int64)
        y = LIBRARY.take(torch_to(x))
        x[1] = 7
        self.assertEqual(y.elements(), bytes_of(x))
        y.set(np.arange(4).tobytes())
        self.assertEqual(x.tolist(), [0, 1, 2, 3])

    def test_strides_are_copied(self):
        base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
        for x in (base.permute(2, 0, 1), base[:, ::2], base[:, :, 1], base[:, :1].expand(2, 5, 4), base.transpose(0, 1)):
            y = LIBRARY.take(torch_to(x))
            self.assertEqual(y.shape, tuple(x.shape))
            self.assertEqual(y.elements(), bytes_of(x))

    def test_the_source_lives_as_long_as_the_array(self):
        x = torch.arange(1000.0)
        expected = bytes_of(x)
        y = LIBRARY.take(torch_to(x))
        del x
        others = [torch.zeros(1000) for _ in range(50)]  # would take freed memory
        self.assertEqual(y.elements(), expected)
        self.assertEqual(len(others), 50)


class ToBoth(unittest.TestCase):
    def test_numpy_shares_each_dtype(self):
        for name, dtype in NUMPY.items():
            expected = aligned((2, 3), dtype)
            x = LIBRARY.create(name, (2, 3), expected.tobytes())
            y = np.from_dlpack(x)
            self.assertEqual((y.dtype, y.shape, y.ctypes.data), (dtype, (2, 3), x.address()))
            np.testing.assert_array_equal(y, expected)

    def test_pytorch_shares_each_dtype(self):
        for name, dtype in TORCH.items():
            expected = torch.arange(6).reshape(2, 3).to(dtype)
            x = LIBRARY.create(name, (2, 3), bytes_of(expected))
            y = torch_from(x)
            self.assertEqual((y.dtype, tuple(y.shape), y.data_ptr()), (dtype, (2, 3), x.address()))
            self.assertTrue(torch.equal(y, expected))

    def test_writes_are_seen_on_both_sides(self):
        x = LIBRARY.create("f32", (3,), np.zeros(3, np.float32).tobytes())
        tensor = torch_from(x)
        tensor[1] = 5
        self.assertEqual(x.elements(), np.array([0, 5, 0], np.float32).tobytes())
        x.set(np.array([1, 2, 3], np.float32).tobytes())
        self.assertEqual(tensor.tolist(), [1, 2, 3])

    def test_the_memory_outlives_the_array(self):
        expected = np.arange(1000, dtype=np.float64)
        for take in (np.from_dlpack, torch_from):
            x = LIBRARY.create("f64", (1000,), expected.tobytes())
            y = take(x)
            del x
            others = [LIBRARY.create("f64", (1000,), bytes(8000)) for _ in range(20)]  # would take freed memory
            self.assertEqual(y.tolist(), expected.tolist())
            self.assertEqual(len(others), 20)

    def test_the_array_outlives_the_view(self):
        x = LIBRARY.create("i32", (3,), np.arange(3, dtype=np.int32).tobytes())
        for take in (np.from_dlpack, torch_from):
            y = take(x)
            del y
            gc.collect()
            self.assertEqual(x.elements(), np.arange(3, dtype=np.int32).tobytes())

    def test_scalars_and_empty_arrays(self):
        scalar = LIBRARY.create("f32", (), np.float32(2.5).tobytes())
        self.assertEqual(np.from_dlpack(scalar).shape, ())
        self.assertEqual(torch_from(scalar).item(), 2.5)
        self.assertEqual(torch_from(LIBRARY.create("f32", (0, 3), b"")).shape, (0, 3))

    def test_memory_passes_through_all_three(self):
        x = torch.arange(4.0)
        y = np.from_dlpack(LIBRARY.take(torch_to(x)))
        x[0] = 9
        self.assertEqual(y.tolist(), [9, 1, 2, 3])


class Versioned(unittest.TestCase):
    """NumPy and PyTorch of the environment have no versioned tensors, so this test makes and reads them."""

    def tensor(self, x, flags):
        """A versioned tensor of a NumPy array, and the list that has an element after it was released."""
        released = []
        managed = array_library.DLManagedTensorVersioned(1, 0, None, array_library.NewDeleter(lambda _: released.append(1)),
                                                         flags)
        managed.keep = (ctypes.c_int64 * x.ndim)(*x.shape), (ctypes.c_int64 * x.ndim)(*[s // x.itemsize for s in x.strides])
        managed.tensor = array_library.DLTensor(x.ctypes.data, 1, 0, x.ndim, 2, 8 * x.itemsize, 1, *managed.keep, 0)
        return managed, released

    def test_import_shares_the_memory(self):
        x = aligned((2, 3), np.float64)
        managed, released = self.tensor(x, 0)
        y = LIBRARY.make("from_dlpack_versioned", ctypes.byref(managed))
        self.assertEqual((y.dtype, y.shape, y.address()), ("f64", (2, 3), x.ctypes.data))
        y.set(bytes(48))
        self.assertEqual(x.tolist(), [[0] * 3] * 2)
        self.assertEqual(released, [])
        del y
        self.assertEqual(released, [1])

    def test_read_only_memory_is_not_written(self):
        x = aligned((3,), np.float32)
        before = x.tolist()
        managed, released = self.tensor(x, array_library.READ_ONLY)
        y = LIBRARY.make("from_dlpack_versioned", ctypes.byref(managed))
        again = y.managed(versioned=True)
        self.assertEqual(again.contents.flags, array_library.READ_ONLY)
        again.contents.deleter(again)
        y.set(bytes(12))
        self.assertEqual((x.tolist(), y.elements()), (before, bytes(12)))

    def test_export_shares_the_memory(self):
        x = LIBRARY.create("f32", (2,), np.array([1, 2], np.float32).tobytes())
        managed = x.managed(versioned=True)
        its = managed.contents
        self.assertEqual((its.major, its.flags, its.tensor.data), (1, 0, x.address()))
        del x
        self.assertEqual(ctypes.string_at(its.tensor.data, 8), np.array([1, 2], np.float32).tobytes())
        its.deleter(managed)


class Names(unittest.TestCase):
    def test_every_dtype_has_a_reference(self):
        self.assertEqual(set(NUMPY) | set(TORCH), set(DTYPES))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

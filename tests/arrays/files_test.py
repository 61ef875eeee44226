"""Compares arrays in .npy and .safetensors files with NumPy and safetensors, in both directions.

Usage: files_test.py SOURCE_ROOT BUILD_ROOT"""

import ctypes
import io
import json
import os
import struct
import sys
import tempfile
import unittest

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import array_library  # noqa: E402: of the environment entered above
import numpy as np  # noqa: E402
import safetensors.numpy  # noqa: E402
import safetensors.torch  # noqa: E402
import torch  # noqa: E402
from array_library import Failure  # noqa: E402

LIBRARY = array_library.Library(BUILD)
LIBRARY.call("set_devices", b"cpu,sim:0")
NUMPY = dict(f32=np.float32, f64=np.float64, i32=np.int32, i64=np.int64, u8=np.uint8, bool=np.bool_, f16=np.float16)
SHAPES = ((), (3,), (2, 3), (0,), (2, 0, 3), (1, 2, 3, 4, 5))


def elements(dtype, shape):
    return np.random.default_rng(3).integers(0, 2 if dtype == np.bool_ else 100, shape).astype(dtype)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "x")

    def write(self, contents):
        with open(self.path, "wb") as file:
            file.write(contents)

    def load(self, device="cpu"):
        return LIBRARY.make("load_npy", os.fsencode(self.path), device.encode())

    def fails(self, contents, text, load):
        """Loading these contents fails with this text."""
        self.write(contents)
        with self.assertRaises(Failure) as caught:
            load()
        self.assertEqual(caught.exception.code, 3, caught.exception)
        self.assertIn(text, caught.exception.text)
        self.assertIn(self.path, caught.exception.text)


class Npy(Files):
    def save(self, array):
        LIBRARY.call("save_npy", array.handle, os.fsencode(self.path))

    def test_numpy_reads_each_dtype_and_shape(self):
        for name, dtype in NUMPY.items():
            for shape in SHAPES:
                expected = elements(dtype, shape)
                for device in ("cpu", "gpu:0"):
                    self.save(LIBRARY.create(name, shape, expected.tobytes(), device))
                    found = np.load(self.path)
                    self.assertEqual((found.dtype, found.shape), (dtype, shape))
                    np.testing.assert_array_equal(found, expected)

    def test_each_dtype_and_shape_of_numpy_is_read(self):
        for name, dtype in NUMPY.items():
            for shape in SHAPES:
                expected = elements(dtype, shape)
                for device, its in (("cpu", "cpu()"), ("gpu:0", "gpu(0)")):
                    with open(self.path, "wb") as file:
                        np.save(file, expected)
                    found = self.load(device)
                    self.assertEqual((found.dtype, found.shape, found.device), (name, shape, its))
                    self.assertEqual(found.elements(), expected.tobytes())

    def test_bf16_returns(self):
        bits = np.arange(6, dtype=np.uint16).tobytes()
        self.save(LIBRARY.create("bf16", (2, 3), bits))
        self.assertEqual(np.load(self.path).dtype, np.dtype("V2"))
        self.assertEqual((self.load().dtype, self.load().elements()), ("bf16", bits))

    def npy(self, x):
        file = io.BytesIO()
        np.save(file, x)
        return file.getvalue()

    def test_orders_that_are_not_read_are_named(self):
        self.fails(self.npy(np.asfortranarray(np.ones((2, 3), np.float32))), "numpy.ascontiguousarray", self.load)
        self.fails(self.npy(np.ones(3, ">f4")), "big-endian data '>f4'; save it with .astype('<f4')", self.load)
        self.fails(self.npy(np.ones(3, np.complex64)), "element type '<c8' is not supported", self.load)

    def test_damaged_files_are_errors(self):
        good = self.npy(np.arange(6, dtype=np.float32))
        for length in range(0, len(good), 7):
            self.fails(good[:length], "", self.load)
        self.fails(good + b"x", "needs 24 bytes, but 25 follow the header", self.load)
        self.fails(good.replace(b"(6,)", b"(7,)"), "f32[7] needs 28 bytes", self.load)
        bools = self.npy(np.ones(3, np.bool_))
        self.fails(bools[:-1] + b"\2", "a boolean is neither 0 nor 1", self.load)

    def test_a_failed_write_leaves_the_file(self):
        array = LIBRARY.create("f32", (1,), bytes(4))
        self.save(array)
        os.mkdir(os.path.join(self.folder, "folder"))
        for path in (os.path.join(self.folder, "absent", "x"), os.path.join(self.folder, "folder")):
            with self.assertRaises(Failure) as caught:
                LIBRARY.call("save_npy", array.handle, os.fsencode(path))
            self.assertEqual(caught.exception.code, 3)
        self.assertEqual(sorted(os.listdir(self.folder)), ["folder", "x"])

    def test_missing_files_and_devices_are_errors(self):
        with self.assertRaises(Failure) as caught:
            self.load()
        self.assertEqual(caught.exception.code, 3)
        self.write(self.npy(np.ones(3)))
        with self.assertRaises(Failure) as caught:
            self.load("gpu:5")
        self.assertEqual(caught.exception.code, 4)
        self.assertIn("load_npy: there is no gpu(5)", caught.exception.text)


class Safetensors(Files):
    def save(self, arrays):
        names = (ctypes.c_char_p * len(arrays))(*(name.encode() for name in arrays))
        handles = (ctypes.c_void_p * len(arrays))(*(array.handle for array in arrays.values()))
        LIBRARY.call("save_safetensors", os.fsencode(self.path), names, handles, ctypes.c_uint64(len(arrays)))

    def read(self):
        return array_library.arrays_in(LIBRARY, self.path)

    def test_the_library_reads_each_dtype_and_shape(self):
        expected = {f"{name}.{len(shape)}.{sum(shape)}": (name, elements(dtype, shape))
                    for name, dtype in NUMPY.items() for shape in SHAPES}
        self.save({key: LIBRARY.create(name, x.shape, x.tobytes(), "gpu:0" if "f" in name else "cpu")
                   for key, (name, x) in expected.items()})
        found = safetensors.numpy.load_file(self.path)
        self.assertEqual(set(found), set(expected))
        for key, (name, x) in expected.items():
            self.assertEqual((found[key].dtype, found[key].shape), (x.dtype, x.shape))
            np.testing.assert_array_equal(found[key], x)

    def test_each_dtype_and_shape_of_the_library_is_read(self):
        expected = {f"{name} {i}": (name, elements(dtype, shape))
                    for name, dtype in NUMPY.items() for i, shape in enumerate(SHAPES)}
        safetensors.numpy.save_file({key: x for key, (_, x) in expected.items()}, self.path)
        found = self.read()
        self.assertEqual(list(found), sorted(expected))
        for key, (name, x) in expected.items():
            self.assertEqual(found[key], (name, x.shape, "cpu()", x.tobytes()))
        self.assertEqual(array_library.arrays_in(LIBRARY, self.path, "gpu:0")["f32 1"][2], "gpu(0)")

    def test_pytorch_reads_and_writes_bf16(self):
        x = torch.arange(6).reshape(2, 3).to(torch.bfloat16)
        safetensors.torch.save_file({"x": x}, self.path)
        dtype, shape, _, found = self.read()["x"]
        self.assertEqual((dtype, shape, found), ("bf16", (2, 3), x.view(torch.int16).numpy().tobytes()))
        self.save({"y": LIBRARY.create("bf16", (2, 3), found)})
        self.assertTrue(torch.equal(safetensors.torch.load_file(self.path)["y"], x))

    def test_a_file_may_have_no_arrays(self):
        self.save({})
        self.assertEqual(safetensors.numpy.load_file(self.path), {})
        self.assertEqual(self.read(), {})

    def test_wrong_names_are_errors(self):
        one = LIBRARY.create("f32", (1,), bytes(4))
        for names, text in ((["__metadata__"], "'__metadata__' is reserved"), (["a", "a"], "'a' appears twice"),
                            ([b"\xff"], "is not UTF-8")):
            encoded = (ctypes.c_char_p * len(names))(*(n if isinstance(n, bytes) else n.encode() for n in names))
            handles = (ctypes.c_void_p * len(names))(*[one.handle] * len(names))
            with self.assertRaises(Failure) as caught:
                LIBRARY.call("save_safetensors", os.fsencode(self.path), encoded, handles, ctypes.c_uint64(len(names)))
            self.assertEqual(caught.exception.code, 2)
            self.assertIn(text, caught.exception.text)
            self.assertFalse(os.path.exists(self.path))

    def file(self, header, data):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    def test_damaged_files_are_errors(self):
        def tensor(dtype="F32", shape=(2,), begin=0, end=8):
            return dict(dtype=dtype, shape=shape, data_offsets=[begin, end])

        good = self.file({"x": tensor()}, bytes(8))
        for length in range(0, len(good), 5):
            self.fails(good[:length], "", self.read)
        self.fails(good + b"x", "the file has 9 bytes of data", self.read)
        self.fails(self.file({"x": tensor(shape=(3,))}, bytes(8)), "f32[3] needs 12 bytes", self.read)
        self.fails(self.file({"x": tensor("F8_E4M3")}, bytes(8)), "element type 'F8_E4M3'", self.read)
        self.fails(self.file({"x": tensor("BOOL", (8,))}, b"\1" * 7 + b"\2"), "tensor 'x': a boolean is neither", self.read)
        self.fails(self.file(b"{]", bytes(8)), "", self.read)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

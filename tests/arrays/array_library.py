"""The C interface of arrays (array_c.h), through ctypes."""

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

DTYPES = ("f32", "f64", "i32", "i64", "u8", "bool", "f16", "bf16")  # by number
BYTES = dict(f32=4, f64=8, i32=4, i64=8, u8=1, bool=1, f16=2, bf16=2)


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class DLManagedTensor(ctypes.Structure):
    pass


class DLManagedTensorVersioned(ctypes.Structure):
    pass


OldDeleter = ctypes.CFUNCTYPE(None, POINTER(DLManagedTensor))
NewDeleter = ctypes.CFUNCTYPE(None, POINTER(DLManagedTensorVersioned))
DLManagedTensor._fields_ = [("tensor", DLTensor), ("manager", c_void_p), ("deleter", OldDeleter)]
DLManagedTensorVersioned._fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p),
                                     ("deleter", NewDeleter), ("flags", c_uint64), ("tensor", DLTensor)]
READ_ONLY = 1

python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
python.PyCapsule_GetPointer.restype = c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, c_char_p]
NAME, USED = b"dltensor", b"used_dltensor"  # capsules keep the pointers


class Failure(Exception):
    """The code and the text of a failed call."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


class Library:
    def __init__(self, build):
        self.its = ctypes.CDLL(os.path.join(build, "lib", "libsluice.so"))
        self.its.sluice_array_last_error.restype = c_char_p
        self.its.sluice_array_destroy.argtypes = [c_void_p]
        self.its.sluice_array_list_destroy.argtypes = [c_void_p]

    def call(self, name, *arguments):
        code = getattr(self.its, "sluice_array_" + name)(*arguments)
        if code:
            raise Failure(code, self.its.sluice_array_last_error().decode(errors="replace"))

    def make(self, name, *arguments):
        """The array that a call creates."""
        handle = c_void_p()
        self.call(name, *arguments, byref(handle))
        return Array(self, handle)

    def create(self, dtype, shape, elements, device="cpu"):
        sizes = (c_int64 * len(shape))(*shape)
        return self.make("create", elements, c_uint64(len(elements)), DTYPES.index(dtype), sizes, len(shape), device.encode())

    def take(self, capsule):
        """The array of a capsule of another library."""
        array = self.make("from_dlpack", c_void_p(python.PyCapsule_GetPointer(capsule, NAME)))
        python.PyCapsule_SetName(capsule, USED)
        return array


class Array:
    """An array of the library. `from_dlpack` of NumPy and PyTorch accepts it."""

    def __init__(self, library, handle, owner=None):
        self.library, self.handle, self.owner = library, handle, owner

    def __del__(self):
        if not self.owner:
            self.library.its.sluice_array_destroy(self.handle)

    @property
    def dtype(self):
        dtype = c_int32()
        self.library.call("get_dtype", self.handle, byref(dtype))
        return DTYPES[dtype.value]

    @property
    def shape(self):
        sizes, dims = POINTER(c_int64)(), c_int32()
        self.library.call("get_shape", self.handle, byref(sizes), byref(dims))
        return tuple(sizes[i] for i in range(dims.value))

    @property
    def device(self):
        name = c_char_p()
        self.library.call("get_device", self.handle, byref(name))
        return name.value.decode()

    def to(self, device):
        return self.library.make("to", self.handle, device.encode())

    def elements(self):
        size = BYTES[self.dtype]
        for dim in self.shape:
            size *= dim
        elements = ctypes.create_string_buffer(size)
        self.library.call("get_elements", self.handle, elements, c_uint64(size))
        return elements.raw

    def set(self, elements):
        self.library.call("set_elements", self.handle, elements, c_uint64(len(elements)))

    def managed(self, versioned=False):
        """A managed tensor, which the caller releases."""
        managed = POINTER(DLManagedTensorVersioned if versioned else DLManagedTensor)()
        self.library.call("to_dlpack" + "_versioned" * versioned, self.handle, byref(managed))
        return managed

    def address(self):
        managed = self.managed()
        address = managed.contents.tensor.data
        managed.contents.deleter(managed)
        return address

    def __dlpack__(self, stream=None):
        return python.PyCapsule_New(ctypes.cast(self.managed(), c_void_p), NAME, None)

    def __dlpack_device__(self):
        return (1, 0)


def arrays_in(library, path, device="cpu"):
    """The arrays of a safetensors file, in order."""
    handle, size = c_void_p(), c_uint64()
    library.call("load_safetensors", os.fsencode(path), device.encode(), byref(handle))
    library.call("list_get_size", handle, byref(size))
    arrays = {}
    for i in range(size.value):
        name, array = c_char_p(), c_void_p()
        library.call("list_get", handle, c_uint64(i), byref(name), byref(array))
        found = Array(library, array, owner=handle)
        arrays[name.value.decode()] = (found.dtype, found.shape, found.device, found.elements())
    library.its.sluice_array_list_destroy(handle)
    return arrays

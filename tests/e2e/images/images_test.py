#!/usr/bin/env python3
"""Image folders, compared with Pillow: images_test.py SOURCE_ROOT BUILD_ROOT."""

import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import numpy as np  # noqa: E402: of the environment entered above
from PIL import Image  # noqa: E402

# The mean of each channel, trained against labels of three classes.
MODEL = """module @pictures {
  sluice.model "pictures" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x3xf32> = <"constant", 0.0 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["image", "label"] (%x: tensor<?x3x8x12xui8>, %label: tensor<?xi32>) {
    %w = sluice.get @w : tensor<3x3xf32>
    %f = sluice.cast %x {to = f32} : (tensor<?x3x8x12xui8>) -> tensor<?x3x8x12xf32>
    %m = sluice.mean %f {axes = array<i64: 2, 3>} : (tensor<?x3x8x12xf32>) -> tensor<?x3xf32>
    %y = sluice.einsum "ab,cb->ac" %m, %w : (tensor<?x3xf32>, tensor<3x3xf32>) -> tensor<?x3xf32>
    %each = sluice.softmax_cross_entropy %y, %label : (tensor<?x3xf32>, tensor<?xi32>) -> tensor<?xf32>
    %loss = sluice.mean %each {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
    sluice.minimize %loss, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
"""
SIZES = [(12, 8), (13, 40), (50, 31), (7, 5), (24, 16), (100, 9), (12, 30), (33, 8)]


class ImagesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.draw = np.random.default_rng(11)
        self.images = []  # in row order
        for label, name in enumerate(("ant", "bee", "cat")):
            os.makedirs(self.path(f"data/{name}"))
            for i, (width, height) in enumerate(SIZES):
                self.save(f"data/{name}/{i}." + ("jpg", "png", "JPEG")[(i + label) % 3], width, height, label, i)
        os.makedirs(self.path("data/nothing"))
        open(self.path("data/README.txt"), "w").close()

    def path(self, name):
        return os.path.join(self.folder, name)

    def smooth(self, width, height, channels=3):
        noise = self.draw.integers(0, 256, (4, 4, channels), dtype=np.uint8)
        return Image.fromarray(noise.squeeze()).resize((width, height), Image.BICUBIC)

    def save(self, name, width, height, label, i):
        image = self.smooth(width, height, (3, 3, 1, 4)[i % 4] if name.endswith("png") else (3, 1)[i % 2])
        image.save(self.path(name), format="PNG" if name.endswith("png") else "JPEG", **({} if name.endswith("png") else {"quality": 90, "progressive": i % 2 == 1}))
        self.images.append((self.path(name), label))

    def rows(self, channels, height, width, *augmented, folder="data", code=0, **variables):
        command = [os.path.join(BUILD, "tests", "image_rows"), folder, *map(str, (channels, height, width, *augmented))]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=100, check=False, env=os.environ | variables)
        self.assertEqual(result.returncode, code, result.stderr)
        if code:
            return result.stderr.decode()
        count, size = len(self.images), channels * height * width
        pixels = np.frombuffer(result.stdout[: count * size], np.uint8).reshape(count, channels, height, width)
        return pixels, np.frombuffer(result.stdout[count * size :], "<i4")

    def opened(self, path):
        image = Image.open(path)
        rgb = Image.fromarray(np.asarray(image)[..., :3]) if image.mode == "RGBA" else image.convert("RGB")
        return rgb

    def covering(self, image, height, width, larger=1.0):
        scale = max(width / image.width, height / image.height)
        return image.resize(tuple(max(least, int(size * scale * larger + 0.5)) for size, least in ((image.width, width), (image.height, height))),
                            Image.BILINEAR)

    def middle(self, path, channels, height, width):
        image = self.covering(self.opened(path), height, width)
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
        return np.asarray(image.convert("L"))[None] if channels == 1 else np.asarray(image).transpose(2, 0, 1)

    def test_each_is_what_pillow_makes_of_it(self):
        for channels, height, width in ((3, 8, 12), (1, 8, 12), (3, 28, 28), (3, 1, 1), (1, 5, 3)):
            with self.subTest(f"{channels}, {height}, {width}"):
                pixels, labels = self.rows(channels, height, width)
                for (path, label), its, its_label in zip(self.images, pixels, labels):
                    self.assertEqual(its_label, label)
                    np.testing.assert_array_equal(its, self.middle(path, channels, height, width), err_msg=path)

    def test_augmented_ones_are_parts_of_larger_ones(self):
        seen = {True: 0, False: 0}
        for seed in (1, 2):
            pixels, _ = self.rows(3, 8, 12, seed, 0)
            for (path, _), its in zip(self.images, pixels):
                whole = np.asarray(self.covering(self.opened(path), 8, 12, 1.125)).transpose(2, 0, 1)
                windows = np.lib.stride_tricks.sliding_window_view(whole, (8, 12), axis=(1, 2)).transpose(1, 2, 0, 3, 4)
                straight, mirrored = ((windows == each).all(axis=(2, 3, 4)).any() for each in (its, its[:, :, ::-1]))
                self.assertTrue(straight or mirrored, path)
                seen[bool(straight)] += 1
        self.assertGreater(min(seen.values()), 10)

    def test_seed_and_epoch_alone_say_which_part(self):
        first = self.rows(3, 8, 12, 1, 0)[0]
        np.testing.assert_array_equal(first, self.rows(3, 8, 12, 1, 0)[0])
        for seed, epoch in ((1, 1), (2, 0)):
            self.assertFalse(np.array_equal(first, self.rows(3, 8, 12, seed, epoch)[0]))

    def test_damage_is_named(self):
        for i, kind in ((2, "JPEG"), (1, "PNG")):
            path = self.images[i][0]
            with open(path, "rb") as file:
                content = file.read()
            for damaged in (content[: len(content) // 2], content[:30], content[:3] + b"\xff" * 40):
                with open(path, "wb") as file:
                    file.write(damaged)
                said = self.rows(3, 8, 12, code=3)
                self.assertRegex(said, "data/ant/.*: (a damaged (JPEG |PNG |)image: |is neither a JPEG nor a PNG image)")
                self.assertIn(os.path.basename(path), said)
            with open(path, "wb") as file:
                file.write(content)
        with open(self.images[0][0], "wb") as file:
            file.write(b"GIF89a")
        self.assertIn("is neither a JPEG nor a PNG image", self.rows(3, 8, 12, code=3))

    def test_what_cannot_be_read_is_named(self):
        os.symlink("nowhere", self.path("data/ant/9.jpg"))
        self.assertIn("data/ant/9.jpg: cannot open: No such file", self.rows(3, 8, 12, code=3))
        os.remove(self.path("data/ant/9.jpg"))

    def test_a_library_that_is_not_there_is_named(self):
        said = self.rows(3, 8, 12, code=4, SLUICE_TURBOJPEG="/nowhere.so")
        self.assertIn("JPEG images need libturbojpeg.so.0", said)
        self.assertIn("install libturbojpeg0, or name the library in SLUICE_TURBOJPEG", said)
        said = self.rows(3, 8, 12, code=4, SLUICE_PNG="/nowhere.so")
        self.assertIn("PNG images need libpng16.so.16", said)

    def run_rows(self, folder, height, width, **variables):
        """The pixels and labels of a folder, and the notes."""
        command = [os.path.join(BUILD, "tests", "image_rows"), folder, "3", str(height), str(width)]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=100, check=False, env=os.environ | variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        count = len(result.stdout) // (3 * height * width + 4)
        pixels = np.frombuffer(result.stdout[: count * 3 * height * width], np.uint8).reshape(count, 3, height, width)
        return pixels, np.frombuffer(result.stdout[count * 3 * height * width :], "<i4").tolist(), result.stderr.decode()

    def write_png(self, name, numbers, bits, color=0, **chunks):
        """A PNG of 4 x 4 pixels, with extra chunks before its data."""
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        size = {0: 1, 2: 3, 6: 4}[color] * bits // 8 * 4
        packed = b"".join(struct.pack(">H", n) if bits == 16 else bytes([n]) for n in numbers)
        rows = b"".join(b"\0" + packed[at : at + size] for at in range(0, len(packed), size))
        content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, bits, color, 0, 0, 0))
        content += b"".join(chunk(kind.encode(), data) for kind, data in chunks.items())
        content += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(content)

    def test_numbers_of_pngs_are_what_they_are(self):
        grey = list(range(0, 256, 17))
        chromaticity = struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000)
        cases = {
            "plain": {}, "linear": {"gAMA": struct.pack(">I", 100000)}, "mac": {"gAMA": struct.pack(">I", 55556)},
            "usual": {"gAMA": struct.pack(">I", 45455), "cHRM": chromaticity}, "srgb": {"sRGB": b"\0", "gAMA": struct.pack(">I", 45455)},
            "profile": {"iCCP": b"odd\0\0" + zlib.compress(b"no profile"), "gAMA": struct.pack(">I", 100000)}}
        for name, chunks in cases.items():
            for color, channels in ((0, 1), (2, 3), (6, 4)):
                for bits in (8, 16):
                    with self.subTest(f"{name}, color {color}, {bits} bits"):
                        numbers = [value if channel < 3 else 77 for value in grey for channel in range(channels)]
                        self.write_png("png/a/x.png", [n * 257 for n in numbers] if bits == 16 else numbers, bits, color, **chunks)
                        pixels, _, _ = self.run_rows("png", 4, 4)
                        np.testing.assert_array_equal(pixels[0].reshape(3, 16), [grey] * 3)

    def test_16_bits_are_rounded(self):
        numbers = [0, 128, 129, 256, 257, 385, 386, 32767, 32768, 32896, 32897, 65278, 65279, 65406, 65407, 65535]
        self.write_png("png/a/x.png", numbers, 16)
        pixels, _, _ = self.run_rows("png", 4, 4)
        np.testing.assert_array_equal(pixels[0, 0].reshape(16), np.floor(np.array(numbers) / 257 + 0.5))

    def test_cmyk_is_what_pillow_makes_of_it(self):
        os.makedirs(self.path("cmyk/a"))
        for quality in (50, 95):
            self.smooth(24, 16, 4).copy().save(self.path("rgba.png"))
            numbers = np.asarray(Image.open(self.path("rgba.png")))
            Image.fromarray(numbers, "CMYK").save(self.path("cmyk/a/x.jpg"), quality=quality)
            pixels, _, _ = self.run_rows("cmyk", 16, 24)
            opened = Image.open(self.path("cmyk/a/x.jpg"))
            self.assertEqual(opened.mode, "CMYK")
            np.testing.assert_array_equal(pixels[0].transpose(1, 2, 0), np.asarray(opened.convert("RGB")))

    def put(self, *names):
        for name in names:
            self.write_png(name, [7] * 16, 8)

    def labels(self, folder, **variables):
        return self.run_rows(folder, 4, 4, **variables)[1:]

    def test_hidden_folders_and_files_are_none(self):
        self.put("some/.ipynb_checkpoints/1.png", "some/cat/1.png", "some/cat/._1.png", "some/dog/1.png", "some/dog/.thumbnails/1.png")
        self.assertEqual(self.labels("some"), ([0, 1], "\n"))

    def test_a_class_without_test_images_keeps_its_number(self):
        self.put("some/train/cat/1.png", "some/train/dog/1.png", "some/train/fox/1.png", "some/test/cat/1.png", "some/test/fox/1.png")
        self.assertEqual(self.labels("some"), ([0, 1, 2], "\n"))
        self.assertEqual(self.labels("some", TEST_PART="1"), ([0, 2], "\n"))
        self.put("some/test/wolf/1.png")
        said = self.rows(3, 4, 4, folder="some", code=3, TEST_PART="1")
        self.assertIn("some/test: has images of a class 'wolf', which the training part does not have", said)

    def test_images_lie_below_their_class_too(self):
        self.put("some/cat/1.png", "some/cat/a/2.png", "some/dog/b/c/1.png")
        os.symlink("..", self.path("some/dog/b/back"))
        self.assertEqual(self.labels("some"), ([0, 0, 1], "\n"))

    def test_images_of_other_formats_are_counted(self):
        self.put("some/cat/1.png", "some/dog/1.png", "some/cat/2.gif", "some/cat/2.bmp", "some/dog/a/2.WebP", "some/dog/2.tif", "some/3.png")
        labels, told = self.labels("some")
        self.assertEqual(labels, [0, 1])
        self.assertEqual(told, "warning: some: 5 images are left out, such as 3.png: JPEG and PNG files in folders of classes are read\n\n")
        self.put("one/cat/1.png")
        self.assertEqual(self.labels("one"), ([0], "warning: one: all images are of one class, 'cat'\n\n"))

    def test_other_shapes_are_refused(self):
        self.assertIn("images fill [3, H, W] or [1, H, W], not [2, 8, 12]", self.rows(2, 8, 12, code=3))

    def test_a_folder_without_images_is_refused(self):
        os.makedirs(self.path("empty/none"))
        self.assertIn("has no data", self.rows(3, 8, 12, folder="empty", code=3))

    def test_huge_images_are_refused(self):
        with open(self.path("data/ant/0.jpg"), "wb") as file:
            buffer = io.BytesIO()
            Image.new("RGB", (1, 1)).save(buffer, "JPEG")
            content = bytearray(buffer.getvalue())
            at = content.index(b"\xff\xc0")
            content[at + 5 : at + 9] = b"\xea\x60\xea\x60"
            file.write(content)
        self.assertIn("0.jpg: an image of 60000 x 60000 pixels; at most 2^26 are supported", self.rows(3, 8, 12, code=3))

    def test_test_data_elsewhere_has_the_classes_of_training(self):
        with open(self.path("pictures.mlir"), "w") as file:
            file.write(MODEL)
        sluice = os.path.join(BUILD, "bin", "sluice")
        subprocess.run([sluice, "compile", "pictures.mlir", "-o", "pictures", "-q"], cwd=self.folder, check=True, timeout=100)
        self.put("other/cat/1.png", "other/dog/2.png", "other/cat/3.gif")
        command = [self.path("pictures"), "train", "--data", "data", "--epochs", "1", "--test-data", "other"]
        result = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=100, check=False)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("other: has images of a class 'dog', which the training part does not have", result.stderr)
        os.remove(self.path("other/dog/2.png"))
        result = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=100, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("warning: other: 1 image is left out, such as cat/3.gif", result.stderr)

    def train(self, program, *options):
        result = subprocess.run([self.path(program), "train", "--data", "data", "--epochs", "2", "--seed", "3", "--save", "w.safetensors", *options],
                                cwd=self.folder, text=True, capture_output=True, timeout=100, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("w.safetensors"), "rb") as file:
            return file.read()

    def test_training_does_not_depend_on_threads(self):
        with open(self.path("pictures.mlir"), "w") as file:
            file.write(MODEL)
        sluice = os.path.join(BUILD, "bin", "sluice")
        subprocess.run([sluice, "compile", "pictures.mlir", "-o", "pictures", "-q"], cwd=self.folder, check=True, timeout=100)
        first = self.train("pictures")
        self.assertEqual(first, self.train("pictures", "--threads", "1"))
        augmented = self.train("pictures", "--augment")
        self.assertNotEqual(first, augmented)
        self.assertEqual(augmented, self.train("pictures", "--augment", "--threads", "1"))
        with open(self.images[5][0], "wb") as file:
            file.write(b"\xff\xd8\xff")
        before = sorted(os.listdir(self.folder))
        result = subprocess.run([self.path("pictures"), "train", "--data", "data", "--epochs", "1", "--save", "out.safetensors", "--json"],
                                cwd=self.folder, text=True, capture_output=True, timeout=100, check=False)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(self.images[5][0].removeprefix(self.folder + "/"), json.loads(result.stdout.splitlines()[-1])["error"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

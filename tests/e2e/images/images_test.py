#!/usr/bin/env python3
"""Folders of images, beside Pillow: images_test.py SOURCE_ROOT BUILD_ROOT."""

import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import environment  # noqa: E402: of the folder named above

environment.enter(SOURCE)

import numpy as np  # noqa: E402: of the environment entered above
from PIL import Image  # noqa: E402

# A mean of each channel, trained against labels of three classes.
MODEL = """module @pictures {
  sluice.model "pictures" format 1 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x3xf32> = <"constant", 0.0 : f64>
  sluice.state hyper @lr : tensor<f32> = <"constant", 0.1 : f64>
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
        self.images = []  # in the order of the rows
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
        os.makedirs(self.path("data/bee/9.png"))
        self.assertIn("data/bee/9.png: cannot read: Is a directory", self.rows(3, 8, 12, code=3))

    def test_a_library_that_is_not_there_is_named(self):
        said = self.rows(3, 8, 12, code=4, SLUICE_TURBOJPEG="/nowhere.so")
        self.assertIn("JPEG images need libturbojpeg.so.0", said)
        self.assertIn("install libturbojpeg0, or name the library in SLUICE_TURBOJPEG", said)
        said = self.rows(3, 8, 12, code=4, SLUICE_PNG="/nowhere.so")
        self.assertIn("PNG images need libpng16.so.16", said)

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
        self.assertIn("0.jpg: an image of 60000 x 60000 pixels; there may be 2^26", self.rows(3, 8, 12, code=3))

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

// Folders of JPEG and PNG images, one folder per class.
#pragma once

#include "runtime/data/tables/Table.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// Whether a folder has subfolders with images. Names that begin with a dot are ignored, here and below.
bool hasImages(const std::string &folder);

/// The names of a folder's classes in order: its subfolders that contain images at any depth.
std::vector<std::string> imageClasses(const std::string &folder);

/// Columns `image` and `label`. `image` fills u8[3, H, W], or u8[1, H, W] in gray. `label` is the index of the class in
/// `classes`, or in the folder's own classes if `classes` is empty. A class missing from `classes` is an error. Images
/// are in path order. Each image is resized to the smallest size that covers H x W and center-cropped. With `augments`,
/// each image is resized one eighth larger; each epoch and row takes another crop and mirrors it at random. The table
/// notes the number of images in unsupported formats.
Table imageTable(const std::string &folder, bool augments, const std::vector<std::string> &classes = {});

} // namespace sluice::runtime

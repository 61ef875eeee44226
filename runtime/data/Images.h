// Folders of JPEG and PNG images, one folder for each class.
#pragma once

#include "runtime/data/Table.h"

#include <string>

namespace sluice::runtime {

/// Whether a folder has folders with images in them.
bool hasImages(const std::string &folder);

/// Columns `image`, which fills u8[3, H, W] or, of shades of grey, u8[1, H, W], and `label`: the number of the folder among
/// all that have images, by name. Images are in the order of their classes and names. Each is made as small as covers H x W, and
/// its middle is taken; with `augments`, of each epoch and row another part of one that is larger by an eighth, which is mirrored
/// or not.
Table imageTable(const std::string &folder, bool augments);

} // namespace sluice::runtime

// Folders of JPEG and PNG images, one folder for each class.
#pragma once

#include "runtime/data/tables/Table.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// Whether a folder has folders with images in them. What is hidden does not count, here and below: names that begin with a dot.
bool hasImages(const std::string &folder);

/// The names of a folder's classes: of its folders that have images, in them or in folders below them, in order.
std::vector<std::string> imageClasses(const std::string &folder);

/// Columns `image`, which fills u8[3, H, W] or, of shades of grey, u8[1, H, W], and `label`: the number of the class among
/// `classes`, or, if there are none, among the folder's own. A class that is none of `classes` is an error. Images are in the order of
/// their paths. Each is made as small as covers H x W, and its middle is taken; with `augments`, of each epoch and row another part of
/// one that is larger by an eighth, which is mirrored or not. The table notes how many images are of other formats.
Table imageTable(const std::string &folder, bool augments, const std::vector<std::string> &classes = {});

} // namespace sluice::runtime

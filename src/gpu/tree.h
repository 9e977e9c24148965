// Trees of files, by their short names here: hosts, images and environments are looked at alike.
#pragma once

#include "image/layers_view.h"
#include "image/tree_view.h"

namespace containerize::gpu {

using image::directory_of;
using image::DirectoryView;
using image::LayersView;
using image::name_of;
using image::TreeView;

} // namespace containerize::gpu

// Short names for file trees, which give the same access to hosts, images and environments.
#pragma once

#include "image/layers_view.h"
#include "image/tree_view.h"

namespace containerize::gpu {

using image::DirectoryView;
using image::LayersView;
using image::name_of;
using image::TreeView;

} // namespace containerize::gpu

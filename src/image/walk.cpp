#include "image/walk.h"

#include "core/interrupt.h"

#include <dirent.h>

namespace containerize::image {

namespace {

using Visit = std::function<Status(Reference file, const std::string& path)>;

Status visit_files_in(Walk& walk, Reference directory, const std::string& path, const Visit& visit) {
    const auto level = walk.enter(directory);
    if (!level) return fail_errno("cannot read the image", path.empty() ? "/" : path, level.error());
    const Directory& listing = level->listing();
    for (const auto& entry : listing.entries) {
        if (interrupted()) return fail_interrupted();
        const auto below = (path.empty() ? "" : path + "/") + std::string(listing.name(entry));
        if (entry.type == DT_DIR) TRY(visit_files_in(walk, entry.inode, below, visit));
        if (entry.type == DT_REG) TRY(visit(entry.inode, below));
    }
    return {};
}

} // namespace

Status for_each_file(Layers& layers, const Visit& visit) {
    Walk walk(layers);
    return visit_files_in(walk, layers.root(), "", visit);
}

} // namespace containerize::image

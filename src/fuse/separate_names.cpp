#include "fuse/separate_names.h"

namespace containerize::fuse {

using image::Reference;

std::uint64_t SeparateNames::node(Reference directory, std::string_view name, Reference file) {
    const std::scoped_lock lock(mutex_);
    const auto [known, is_new] = nodes_.try_emplace({directory, std::string(name)}, first + files_.size());
    if (is_new) files_.push_back(file);
    return known->second;
}

std::optional<Reference> SeparateNames::file(std::uint64_t node) const {
    const std::scoped_lock lock(mutex_);
    if (node - first >= files_.size()) return std::nullopt;
    return files_[node - first];
}

} // namespace containerize::fuse

#include "build/state_change.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "environments/writable_images.h"
#include "prefix/publish.h"
#include "prefix/states.h"
#include "prefix/wrappers.h"
#include "root/root.h"

namespace containerize::build {

Result<inputs::Inputs> inputs_for_change(const inputs::BuildOptions& options) {
    auto current = TRY(prefix::read_changeable(options.prefix));
    return inputs::check_update(options, current);
}

Result<std::size_t> StateChange::begin(const manifest::Manifest& manifest) {
    TRY(environments::WritableImages::mount(place_.context, manifest));
    assembly_ = TRY(prefix::make_assembly(place_.lock, place_.cleanup));
    const auto surroundings = TRY(root::open_tree(manifest.settings.base));
    const prefix::WrapperRequest wrappers{.root = place_.context.root(),
                                          .surroundings = *surroundings,
                                          .prefix = place_.lock.prefix,
                                          .mask = manifest.mask,
                                          .paths = manifest.wrapper_paths,
                                          .libexec = place_.context.options.libexec,
                                          .output = assembly_,
                                          .existing = place_.lock.prefix,
                                          .umask_bits = place_.context.options.umask_bits};
    auto commands = TRY(prefix::make_wrappers(wrappers));
    TRY(prefix::add_session(wrappers));
    return commands;
}

Status StateChange::finish(const manifest::Manifest& manifest, std::vector<manifest::Manifest> kept) {
    if (interrupted()) return fail_interrupted();
    return prefix::publish({.lock = place_.lock,
                            .assembly = assembly_,
                            .manifest = manifest,
                            .kept = std::move(kept),
                            .staging = place_.context.staging},
                           place_.cleanup);
}

} // namespace containerize::build

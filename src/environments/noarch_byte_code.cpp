#include "environments/noarch_byte_code.h"

#include "conda/package_image.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "environments/byte_code_image.h"
#include "environments/image_cache.h"
#include "image/listing.h"
#include "util/in_parallel.h"
#include "util/log.h"
#include "util/timings.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <sys/stat.h>

namespace containerize::environments {

namespace {

/// The source of "a/__pycache__/b.cpython-311.pyc": "a/b.py".
std::string source_of(const fs::path& byte_code) {
    return byte_code.parent_path().parent_path() / (byte_code.stem().stem().string() + ".py");
}

class ByteCodeLinker {
public:
    ByteCodeLinker(BuildContext& context, const std::vector<conda::PackageToLink>& packages,
                   conda::Linked& linked, image::Writer& writer, packages::PackageImages images)
        : context_(context), packages_(packages), linked_(linked), writer_(writer),
          images_(std::move(images)) {
        for (const auto& module : linked.modules)
            of_package_[module.package].targets.emplace(module.path, module.target);
        for (auto& [package, compiled] : of_package_)
            order_.push_back(package);
    }

    Status run() {
        TRY(find_images());
        // Always, because it also decides which small files share a block.
        TRY(writer_.checkpoint());
        TRY(compile_missing());
        for (const auto package : order_)
            if (of_package_[package].byte_code) TRY(link(of_package_[package]));
        std::erase_if(linked_.to_compile, [this](const auto& path) { return done_.contains(path); });
        return {};
    }

private:
    struct Compiled {
        std::unordered_map<std::string, std::string> targets; ///< where each module is installed
        std::unique_ptr<image::Reader> byte_code;
    };

    /// Byte-code depends on the build of Python, too.
    [[nodiscard]] packages::ImageKey key(std::size_t package) const {
        return image_key(context_, packages_[package].sha256, packages_[*linked_.python].sha256);
    }

    Status find_images() {
        return in_parallel(context_.jobs, order_.size(), [this](std::size_t i) -> Status {
            if (interrupted()) return fail_interrupted();
            of_package_.at(order_[i]).byte_code = images_.find(key(order_[i]));
            return {};
        });
    }

    Status compile_missing() {
        const auto missing = std::ranges::count_if(
            of_package_, [](const auto& one) { return one.second.byte_code == nullptr; });
        if (missing == 0) return {};
        // Without FUSE, they are compiled with everything else, each time.
        if (const auto mounted = context_.space.mount_image(context_.image(), context_.prefix); !mounted) {
            log::detail("byte-code is not kept: " + to_string(mounted.error()));
            return {};
        }
        TRY(compile_in_image(static_cast<std::size_t>(missing)));
        return context_.space.unmount(context_.prefix);
    }

    Status compile_in_image(std::size_t count) {
        const auto workers = TRY(ByteCodeWorkers::start(
            {.inside = [this](std::vector<std::string> argv) { return context_.inside(std::move(argv)); },
             .python = context_.python().string(),
             .workers = context_.jobs}));
        if (!workers->supported()) return {};
        Stage stage("Compiling packages");
        for (const auto package : order_) {
            auto& compiled = of_package_[package];
            if (compiled.byte_code) continue;
            stage.detail(packages_[package].record.distribution());
            auto made = images_.make(key(package), options_of_images(context_), [&](image::Writer& writer) {
                return add_byte_code(*packages_[package].image, *workers, context_.jobs, writer);
            });
            if (!made && interrupted()) return fail(std::move(made.error()));
            // Its modules are compiled with everything else then.
            if (!made) log::detail("byte-code is not kept: " + to_string(made.error()));
            if (made) compiled.byte_code = std::move(*made);
        }
        stage.finish(counted(count, "package"));
        return {};
    }

    Status link(const Compiled& compiled) {
        auto& image = *compiled.byte_code;
        std::vector<image::ListedEntry> files;
        std::vector<image::StoredFile> stored;
        for (auto& entry : TRY(image::list_entries(image))) {
            // Another package may have the module's place.
            if (!S_ISREG(entry.inode.mode) || !compiled.targets.contains(source_of(entry.path))) continue;
            auto content = image.stored_file(entry.reference);
            if (!content) return conda::unusable(image, "'" + entry.path + "' is damaged");
            files.push_back(std::move(entry));
            stored.push_back(std::move(*content));
        }
        image::CopiedBlocks blocks;
        TRY(writer_.copy_blocks(image, stored, blocks));
        for (std::size_t i = 0; i < files.size(); ++i)
            TRY(link_file(files[i], stored[i], compiled.targets.at(source_of(files[i].path)), blocks));
        return {};
    }

    Status link_file(const image::ListedEntry& file, const image::StoredFile& stored,
                     const std::string& module, const image::CopiedBlocks& blocks) {
        const auto directory = (fs::path(module).parent_path() / "__pycache__").string();
        if (writer_.contains(directory) && writer_.directory(directory) == nullptr) return {};
        const auto path = directory + file.path.substr(file.path.rfind('/'));
        writer_.remove(path);
        done_.insert(module);
        return writer_.link_file(
            path,
            {.mode = image::mode_for_sharing(file.inode.mode, context_.options.umask_bits),
             .mtime = file.inode.mtime},
            stored, blocks);
    }

    BuildContext& context_;
    const std::vector<conda::PackageToLink>& packages_;
    conda::Linked& linked_;
    image::Writer& writer_;
    packages::PackageImages images_;
    std::map<std::size_t, Compiled> of_package_;
    std::vector<std::size_t> order_;
    std::unordered_set<std::string> done_; ///< modules that have byte-code
};

} // namespace

Status link_byte_code(BuildContext& context, const std::vector<conda::PackageToLink>& packages,
                      conda::Linked& linked, image::Writer& writer) {
    // A package named "python" may hold no interpreter, as in test channels.
    if (linked.modules.empty() || !linked.python || !writer.contains("bin/python")) return {};
    const timings::Span span("Linking byte-code");
    auto images = TRY(open_images(context));
    return ByteCodeLinker(context, packages, linked, writer, std::move(images)).run();
}

} // namespace containerize::environments

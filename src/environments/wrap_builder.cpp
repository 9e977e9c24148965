// Packs software that is already installed on disk.
#include "core/filesystem.h"
#include "environments/environment_builder.h"
#include "environments/writable_images.h"
#include "image/tree_entries.h"
#include "util/log.h"

#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::environments {

namespace {

/// Whether the symlink `path` below `root` leads out of `root`.
bool leaves(const fs::path& root, const std::string& path, const fs::path& target) {
    const auto whole =
        target.is_absolute() ? target : ((root / path).parent_path() / target).lexically_normal();
    const auto relative = whole.lexically_normal().lexically_relative(root);
    return relative.empty() || *relative.begin() == "..";
}

class WrapBuilder : public EnvironmentBuilder {
public:
    explicit WrapBuilder(BuildContext& context) : context_(context) {}

    Status create() override {
        TRY(pack_source());
        images_ = TRY(WritableImages::mount(context_, {context_.image()}, context_.inputs.mask));
        return {};
    }

    [[nodiscard]] fs::path written() const override { return images_.written(); }

    Result<Activation> activation() override { return path_activation(); }

    Result<image::WriteStats> pack(const Progress& progress) override {
        auto stats =
            images_.pack(writer_, context_.image(), context_.writer_options(), context_.options.umask_bits,
                         [&](std::uint64_t done) { progress(done, 0); });
        if (stats) stats->left_out.insert(stats->left_out.begin(), left_out_.begin(), left_out_.end());
        return stats;
    }

private:
    Status pack_source() {
        Stage stage("Packing the software");
        const auto& source = context_.inputs.wrap_source;
        auto tree = TRY(image::list_tree(source, context_.options.umask_bits));
        report_links(source, tree);
        std::uint64_t bytes = 0;
        for (const auto& entry : tree.entries)
            bytes += entry.original == image::TreeEntry::npos ? entry.size : 0;
        auto writer = TRY(image::Writer::create(context_.image(), context_.writer_options()));
        if (auto added = image::add_entries(writer, tree, image::Whiteouts::apply,
                                            [&](std::uint64_t done) { stage.advance(done, bytes); });
            !added)
            return added;
        TRY(writer.checkpoint());
        writer_.emplace(std::move(writer));
        left_out_ = std::move(tree.left_out);
        context_.record["source"] = source.string();
        stage.finish(fmt::format("{} entries, {}", human_count(tree.entries.size()), human_bytes(bytes)));
        return {};
    }

    // The targets are not in the image, so every node must have them.
    static void report_links(const fs::path& source, const image::TreeEntries& tree) {
        constexpr std::size_t shown = 10;
        std::size_t count = 0;
        for (const auto& entry : tree.entries) {
            if (!S_ISLNK(entry.type) || !leaves(source, entry.path, entry.target)) continue;
            if (++count <= shown)
                log::warn("the link " + entry.path + " points outside the software's directory, to " +
                          entry.target + ".");
            else
                log::detail("link that points outside the software's directory: " + entry.path + " -> " +
                            entry.target);
        }
        if (count > shown)
            log::warn(human_count(count - shown) + " more links point outside it. The log lists them all.");
    }

    BuildContext& context_;
    WritableImages images_;
    std::optional<image::Writer> writer_;
    std::vector<std::string> left_out_;
};

} // namespace

std::unique_ptr<EnvironmentBuilder> make_wrap_builder(BuildContext& context) {
    return std::make_unique<WrapBuilder>(context);
}

} // namespace containerize::environments

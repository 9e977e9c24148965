// Wrappers for programs of the base itself: the image holds nothing but symlinks to them.
#include "core/filesystem.h"
#include "environments/environment_builder.h"
#include "image/writer.h"
#include "root/root.h"
#include "util/log.h"

#include <memory>

namespace containerize::environments {

namespace {

class ContainerBuilder : public EnvironmentBuilder {
public:
    explicit ContainerBuilder(BuildContext& context) : context_(context), tree_(context.staging / "root") {}

    Status create() override {
        TRY(make_directories(tree_ / "bin", "cannot create a staging directory"));
        return context_.space.bind(tree_, context_.prefix, context_.prefix);
    }

    Status install() override {
        Stage stage("Looking for programs");
        const auto tree = TRY(root::open_tree(context_.inputs.settings.base));
        for (const auto& path : context_.inputs.programs)
            TRY(add(*tree, path));
        context_.record["programs"] = context_.inputs.programs;
        stage.finish(human_count(count_) + " programs");
        return {};
    }

    [[nodiscard]] fs::path written() const override { return tree_; }

    Result<Activation> activation() override { return path_activation(); }

    Result<image::WriteStats> pack(const Progress& progress) override {
        return image::write_tree(tree_, context_.image(), context_.writer_options(),
                                 context_.options.umask_bits, [&](std::uint64_t done) { progress(done, 0); });
    }

private:
    /// Links one program, or all programs in a directory.
    Status add(const image::TreeView& tree, const std::string& path) {
        using Kind = image::TreeView::Kind;
        if (tree.is_program(path)) return link(path);
        if (!tree.exists(path))
            return fail_input("the container has no such path", {}, path,
                              "Give -w programs, or directories with programs, in the container.");
        if (tree.kind(path) != Kind::directory)
            return fail_input("this is not a program or a directory", {}, path,
                              "Give -w directories of the container that hold programs, or programs.");
        const std::size_t before = count_;
        for (const auto& name : tree.list(path))
            if (tree.is_program(path + "/" + name)) TRY(link(path + "/" + name));
        if (count_ == before) log::warn("no programs found in " + path + ".");
        return {};
    }

    // The first program of a name wins, as on PATH.
    Status link(const std::string& program) {
        const auto name = tree_ / "bin" / fs::path(program).filename();
        std::error_code failed;
        fs::create_symlink(program, name, failed);
        if (failed == std::errc::file_exists) return {};
        if (failed) return fail_errno("cannot create a link", name.string(), failed.value());
        ++count_;
        return {};
    }

    BuildContext& context_;
    fs::path tree_;
    std::size_t count_ = 0;
};

} // namespace

std::unique_ptr<EnvironmentBuilder> make_container_builder(BuildContext& context) {
    return std::make_unique<ContainerBuilder>(context);
}

} // namespace containerize::environments

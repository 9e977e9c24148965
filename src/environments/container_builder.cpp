// Wrappers for programs of the base itself: the image holds nothing but symlinks to them.
#include "core/filesystem.h"
#include "environments/environment_builder.h"
#include "image/writer.h"
#include "root/root.h"
#include "util/log.h"

#include <memory>
#include <utility>

namespace containerize::environments {

namespace {

using launch::EnvironmentChange;

class ContainerRecipe : public Recipe {
public:
    explicit ContainerRecipe(Workshop& shop) : shop_(shop), tree_(shop.staging / "root") {}

    Status create() override {
        std::error_code failed;
        fs::create_directories(tree_ / "bin", failed);
        if (failed) return fail_errno("cannot make a staging directory", tree_.string(), failed.value());
        return shop_.space.bind(tree_, shop_.prefix, shop_.prefix);
    }

    Status install() override {
        Stage stage("Looking for programs");
        const auto tree = root::open_tree(shop_.inputs.base);
        if (!tree) return fail(Error(tree.error()));
        for (const auto& path : shop_.inputs.programs)
            if (auto added = add(**tree, path); !added) return added;
        shop_.record["programs"] = shop_.inputs.programs;
        stage.finish(human_count(count_) + " programs");
        return {};
    }

    Status compile() override { return {}; }

    Result<std::vector<EnvironmentChange>> activation() override { return path_activation(); }

    Result<std::string> packages() override { return std::string(); }

    Result<image::WriteStats>
    pack(const std::function<void(std::uint64_t, std::uint64_t)>& progress) override {
        return image::write_tree(tree_, shop_.image(), shop_.writer_options(), shop_.options.umask_bits,
                                 [&](std::uint64_t done) { progress(done, 0); });
    }

    [[nodiscard]] std::string python_name() const override { return {}; }

private:
    /// Links one program, or all programs in a directory.
    Status add(const image::TreeView& tree, const std::string& path) {
        using Kind = image::TreeView::Kind;
        if (tree.is_program(path)) return link(path);
        if (!tree.exists(path))
            return fail_input("the container has no such path", {}, path,
                              "Give -w directories of it that hold programs, or programs.");
        if (tree.kind(path) != Kind::directory)
            return fail_input("this is no program, nor a directory of programs", {}, path,
                              "Give -w directories of the container that hold programs, or programs.");
        const std::size_t before = count_;
        for (const auto& name : tree.list(path))
            if (tree.is_program(path + "/" + name))
                if (auto linked = link(path + "/" + name); !linked) return linked;
        if (count_ == before) log::warn("there are no programs in " + path + ".");
        return {};
    }

    // The first program of a name wins, as on PATH.
    Status link(const std::string& program) {
        const auto name = tree_ / "bin" / fs::path(program).filename();
        std::error_code failed;
        fs::create_symlink(program, name, failed);
        if (failed == std::errc::file_exists) return {};
        if (failed) return fail_errno("cannot make a link", name.string(), failed.value());
        ++count_;
        return {};
    }

    Workshop& shop_;
    fs::path tree_;
    std::size_t count_ = 0;
};

} // namespace

std::unique_ptr<Recipe> make_container_recipe(Workshop& shop) {
    return std::make_unique<ContainerRecipe>(shop);
}

} // namespace containerize::environments

#include "environments/conda_change.h"

#include "conda/installed.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "environments/conda_contents.h"
#include "environments/conda_packages.h"
#include "environments/link_scripts.h"
#include "image/unpack.h"
#include "inputs/tykky_installation.h"
#include "util/log.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::environments {

namespace {

using conda::InstalledPackage;

/// "a/b/__pycache__/c.cpython-" for "a/b/c.py": the common prefix of its byte-code files.
std::optional<fs::path> byte_code_of(const fs::path& source) {
    if (source.extension() != ".py") return std::nullopt;
    return source.parent_path() / "__pycache__" / (source.stem().string() + ".cpython-");
}

/// Removes files by their paths below a directory. Never follows symlinks: those of a package may lead out of
/// the prefix.
class Remover {
public:
    explicit Remover(const fs::path& root) : root_(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

    void remove(const fs::path& path) {
        const Fd directory = open_below(path.parent_path());
        if (!directory) return;
        unlinkat(directory.get(), path.filename().c_str(), 0);
        for (auto above = path.parent_path(); !above.empty(); above = above.parent_path())
            directories_.insert(above);
        if (const auto byte_code = byte_code_of(path)) remove_beginning_with(*byte_code);
    }

    /// Removes the directories of removed files that are now empty.
    void remove_empty_directories() {
        // In reverse order, children come before their parents.
        for (auto directory = directories_.rbegin(); directory != directories_.rend(); ++directory) {
            const Fd above = open_below(directory->parent_path());
            if (above) unlinkat(above.get(), directory->filename().c_str(), AT_REMOVEDIR);
        }
    }

private:
    [[nodiscard]] Fd open_below(const fs::path& path) const {
        Fd directory(dup(root_.get()));
        for (const auto& part : path) {
            if (!directory) break;
            directory =
                Fd(openat(directory.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        }
        return directory;
    }

    void remove_beginning_with(const fs::path& start) {
        const Fd directory = open_below(start.parent_path());
        if (!directory) return;
        directories_.insert(start.parent_path());
        for (const auto& name : names_in(path_of(directory)))
            if (name.starts_with(start.filename().string())) unlinkat(directory.get(), name.c_str(), 0);
    }

    Fd root_;
    std::set<fs::path> directories_;
};

/// The normalised distribution names of a conda package's Python metadata: "a-b" for
/// "lib/python3.11/site-packages/a_b-1.0.dist-info/METADATA".
std::set<std::string> python_names(const InstalledPackage& package) {
    std::set<std::string> names;
    for (const auto& file : package.files) {
        const auto metadata = fs::path(file).parent_path().filename();
        if (metadata.extension() != ".dist-info" && metadata.extension() != ".egg-info") continue;
        const auto name = metadata.stem().string();
        names.insert(pip::normalised_name(name.substr(0, name.find('-'))));
    }
    return names;
}

class CondaChanger {
public:
    CondaChanger(const BuildContext& context, bool prune)
        : context_(context), prune_(prune),
          place_(inputs::place_of_environment(context.record, context.prefix)) {}

    Result<std::vector<conda::Channel>> change() {
        TRY(plan());
        packages_ = TRY(fetch_packages(context_, changes_.plan));
        TRY(remove());
        TRY(link());
        TRY(inputs::link_environment(context_.root(), place_.relative));
        TRY(run_link_scripts(context_, linked_.scripts));
        return changes_.plan.channels;
    }

    Result<CondaChanges> only_plan() {
        TRY(plan());
        return std::move(changes_);
    }

private:
    Status plan() {
        installed_ = TRY(conda::read_installed(tree()));
        const auto pinned = TRY(conda::read_pinned(tree()));
        changes_ = TRY(plan_conda_changes(context_.options, context_.inputs, installed_, pinned, prune_,
                                          context_.staging));
        return context_.inputs.locked ? relink_what_pip_replaced() : Status();
    }

    /// pip deletes the files of a conda package that it replaces, so they are missing once pip's version is
    /// uninstalled. Leaves replacements alone that the lock keeps.
    Status relink_what_pip_replaced() {
        const auto python_name = TRY(name_of_python(context_));
        const auto contents = TRY(read_contents(tree(), python_name));
        std::set<std::string> of_pip;
        for (const auto& one : contents.of_pip)
            of_pip.insert(pip::normalised_name(one.name));
        const auto is_of_pip = [&](const std::string& name) { return of_pip.contains(name); };
        for (const auto& package : installed_) {
            if (goes(package) || !lacks_files(package)) continue;
            if (std::ranges::any_of(python_names(package), is_of_pip)) continue;
            log::detail("installing again, because files are missing: " + package.record.distribution());
            relink(package, changes_);
        }
        return {};
    }

    /// Ignores byte-code, which is compiled again.
    [[nodiscard]] bool lacks_files(const InstalledPackage& package) const {
        return std::ranges::any_of(package.files, [&](const std::string& file) {
            struct stat info {};
            return !file.ends_with(".pyc") && lstat((tree() / file).c_str(), &info) != 0;
        });
    }

    Status remove() {
        if (changes_.removed.empty()) return {};
        Stage stage("Removing packages");
        run_unlink_scripts(context_, removed_records());
        std::set<std::string> kept; ///< files that a remaining package owns, too
        for (const auto& package : installed_)
            if (!goes(package)) kept.insert(package.files.begin(), package.files.end());
        Remover remover(tree());
        for (const auto& package : changes_.removed) {
            for (const auto& file : package.files)
                if (!kept.contains(file)) remover.remove(file);
            remover.remove(fs::path("conda-meta") / package.record_file.filename());
        }
        remover.remove_empty_directories();
        stage.finish(counted(changes_.removed.size(), "package"));
        return {};
    }

    Status link() {
        if (changes_.plan.packages.empty() && changes_.removed.empty()) return {};
        Stage stage("Installing packages");
        const fs::path image = context_.staging / "added.sqfs";
        auto writer = TRY(image::Writer::create(image, context_.writer_options()));
        auto infos = TRY(read_packages(context_, packages_));
        linked_ = TRY(link_packages(context_, packages_, std::move(infos), link_options(), writer, stage));
        TRY(writer.finish());
        TRY(image::unpack(std::array{image}, tree()));
        std::error_code ignored;
        fs::remove(image, ignored);
        stage.finish(summary_of(linked_));
        return {};
    }

    [[nodiscard]] fs::path tree() const { return context_.root() / place_.relative; }

    conda::LinkOptions link_options() const {
        const auto python = std::ranges::find_if(
            installed_, [](const auto& package) { return package.record.name == "python"; });
        const bool stays = python != installed_.end() && !goes(*python);
        return {.prefix = place_.inside.string(),
                .time = context_.inputs.source_date_epoch.value_or(static_cast<std::uint32_t>(time(nullptr))),
                .command_line = "containerize update",
                .python = stays ? std::optional(python->record) : std::nullopt,
                .earlier_history = read_file(tree() / "conda-meta/history").value_or(""),
                .removed = removed_records(),
                .tree = tree()};
    }

    std::vector<conda::PackageRecord> removed_records() const {
        std::vector<conda::PackageRecord> records;
        for (const auto& package : changes_.removed)
            records.push_back(package.record);
        return records;
    }

    [[nodiscard]] bool goes(const InstalledPackage& package) const {
        return std::ranges::any_of(changes_.removed, [&](const auto& removed) {
            return removed.record_file == package.record_file;
        });
    }

    const BuildContext& context_;
    bool prune_;
    inputs::EnvironmentPlace place_;
    std::vector<InstalledPackage> installed_;
    CondaChanges changes_;
    std::vector<conda::PackageToLink> packages_;
    conda::Linked linked_;
};

} // namespace

Result<std::vector<conda::Channel>> change_packages(const BuildContext& context, bool prune) {
    return CondaChanger(context, prune).change();
}

Result<CondaChanges> plan_changes(const BuildContext& context, bool prune) {
    return CondaChanger(context, prune).only_plan();
}

} // namespace containerize::environments

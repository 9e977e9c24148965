#include "wheel/installation.h"

#include "core/text.h"
#include "util/digest.h"
#include "wheel/scripts.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

namespace containerize::wheel {

namespace {

namespace fs = std::filesystem;

/// Projects whose wheels name commands with the version of the Python that built the wheel. Each gets its
/// commands for the version that it is installed for.
struct VersionedCommand {
    std::string_view name, separator;
    bool with_major;
};
constexpr VersionedCommand versioned_commands[] = {{"pip", "", true}, {"easy_install", "-", false}};

/// Whether `text` is "3" (if `major_alone`) or "3.11".
bool is_python_version(std::string_view text, bool major_alone) {
    const auto parts = split(text, '.');
    return (parts.size() == 2 || (major_alone && parts.size() == 1)) &&
           std::ranges::all_of(parts, [](std::string_view part) {
               return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
           });
}

void adapt(std::vector<EntryPoint>& commands, const VersionedCommand& versioned, const std::string& python) {
    const auto plain = std::ranges::find(commands, versioned.name, &EntryPoint::name);
    if (plain == commands.end()) return;
    const auto start = std::string(versioned.name) + std::string(versioned.separator);
    std::vector<EntryPoint> added;
    const auto add = [&](const std::string& version) {
        added.push_back({.name = start + version, .module = plain->module, .function = plain->function});
    };
    add(python);
    if (versioned.with_major) add(python.substr(0, python.find('.')));
    std::erase_if(commands, [&](const EntryPoint& one) {
        return one.name.starts_with(start) &&
               is_python_version(std::string_view(one.name).substr(start.size()), versioned.with_major);
    });
    std::ranges::move(added, std::back_inserter(commands));
}

/// The command for which setuptools may have made this script, in several forms.
std::string_view command_of_wrapper(std::string_view script) {
    const auto name = script.substr(script.rfind('/') + 1);
    const auto lowered = lower(name);
    for (const std::string_view ending : {".exe", "-script.py", ".pya"})
        if (lowered.ends_with(ending)) return name.substr(0, name.size() - ending.size());
    return name;
}

RecordRow row_of(std::string path, std::string_view content) {
    return {.path = std::move(path),
            .digest = record_digest(sha256(content)),
            .size = std::to_string(content.size())};
}

class Planner {
public:
    Planner(const DistInfo& info, const std::vector<PackagedFile>& files, const InstallRequest& request)
        : info_(info), files_(files), request_(request) {}

    Result<Installation> plan() {
        const auto commands = TRY(parse_entry_points(info_.entry_points));
        auto rows = TRY(parse_record(info_.record));
        choose_files(commands);
        for (auto& row : rows)
            adapt(row);
        make_scripts(commands);
        make_metadata();
        for (auto& file : generated_)
            rows.push_back(row_of(in_record(file.path), file.content));
        for (const auto& place : unlisted_)
            rows.push_back({.path = installed_[place], .digest = {}, .size = {}});
        std::ranges::sort(rows);
        std::ranges::move(rewritten_, std::back_inserter(generated_));
        add(info_.directory + "/RECORD", record_text(rows));
        std::set<std::string_view> paths;
        for (const auto& file : generated_)
            paths.insert(file.path);
        for (const auto& file : files_)
            if (paths.contains(path_in_prefix(request_.layout, file.place))) replaced_.insert(file.place);
        return Installation{.replaced = std::move(replaced_), .generated = std::move(generated_)};
    }

private:
    /// Decides which files are installed, and rewrites scripts.
    void choose_files(const std::vector<EntryPoint>& commands) {
        for (const auto& file : files_) {
            const bool is_script = file.place.scheme == Scheme::scripts;
            if (is_script && std::ranges::find(commands, command_of_wrapper(file.place.path),
                                               &EntryPoint::name) != commands.end()) {
                replaced_.insert(file.place);
                continue;
            }
            auto path = path_in_prefix(request_.layout, file.place);
            installed_[file.place] =
                file.place.scheme == Scheme::site_packages ? file.place.path : in_record(path);
            if (!is_script || !file.script) continue;
            rewritten_.push_back({.path = std::move(path),
                                  .content = with_interpreter(*file.script, request_.interpreter),
                                  .executable = file.executable});
            changed_[installed_[file.place]] = rewritten_.size() - 1;
        }
        for (const auto& [place, path] : installed_)
            unlisted_.insert(place);
    }

    /// Turns a row of the wheel into one of the installation. As pip does, leaves a row that is there again,
    /// but not one that names the same place in another way.
    void adapt(RecordRow& row) {
        if (!adapted_.insert(row.path).second) return;
        const auto place = place_of(row.path);
        if (!place) return;
        const auto found = installed_.find(*place);
        if (found == installed_.end()) return;
        row.path = found->second;
        if (const auto change = changed_.find(row.path); change != changed_.end())
            row = row_of(row.path, rewritten_[change->second].content);
        unlisted_.erase(*place);
    }

    void make_scripts(std::vector<EntryPoint> commands) {
        for (const auto& versioned : versioned_commands)
            wheel::adapt(commands, versioned, request_.python);
        for (const auto& command : commands)
            generated_.push_back({.path = path_in_prefix(request_.layout, {Scheme::scripts, command.name}),
                                  .content = entry_point_script(command, request_.interpreter),
                                  .executable = true});
    }

    void make_metadata() {
        add(info_.directory + "/INSTALLER", "containerize\n");
        if (request_.direct_url) add(info_.directory + "/direct_url.json", *request_.direct_url);
        if (request_.requested) add(info_.directory + "/REQUESTED", "");
    }

    void add(const std::string& path, std::string content) {
        generated_.push_back({.path = path_in_prefix(request_.layout, {Scheme::site_packages, path}),
                              .content = std::move(content)});
    }

    /// The path in RECORD of a path in the prefix.
    [[nodiscard]] std::string in_record(const std::string& path) const {
        return fs::path(path).lexically_relative(request_.layout.site_packages).string();
    }

    const DistInfo& info_;
    const std::vector<PackagedFile>& files_;
    const InstallRequest& request_;
    std::map<Place, std::string> installed_;     ///< path in RECORD
    std::set<Place> unlisted_;                   ///< installed files without a row so far
    std::set<std::string> adapted_;              ///< paths of the wheel's rows so far
    std::map<std::string, std::size_t> changed_; ///< path in RECORD -> index of `rewritten_`
    std::vector<GeneratedFile> rewritten_, generated_;
    std::set<Place> replaced_;
};

Layout layout_with_headers(std::string_view include, std::string_view python, std::string_view distribution) {
    const auto name = "python" + std::string(python);
    return {.site_packages = "lib/" + name + "/site-packages",
            .scripts = "bin",
            .data = "",
            .headers = std::string(include) + name + "/" + std::string(distribution)};
}

} // namespace

Layout venv_layout(std::string_view python, std::string_view distribution) {
    return layout_with_headers("include/site/", python, distribution);
}

Layout prefix_layout(std::string_view python, std::string_view distribution) {
    return layout_with_headers("include/", python, distribution);
}

std::string path_in_prefix(const Layout& layout, const Place& place) {
    const auto& directory = place.scheme == Scheme::site_packages ? layout.site_packages
                            : place.scheme == Scheme::scripts     ? layout.scripts
                            : place.scheme == Scheme::headers     ? layout.headers
                                                                  : layout.data;
    return directory.empty() ? place.path : directory + "/" + place.path;
}

Result<Installation> plan_installation(const DistInfo& info, const std::vector<PackagedFile>& files,
                                       const InstallRequest& request) {
    return Planner(info, files, request).plan();
}

} // namespace containerize::wheel

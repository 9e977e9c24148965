// Reads what Python projects (pyproject.toml) and scripts (PEP 723) depend on. These are no locks.
#include "core/filesystem.h"
#include "core/printable.h"
#include "core/text.h"
#include "spec/locked_lines.h"
#include "spec/package_name.h"
#include "util/text_limits.h"
#include "util/toml_file.h"
#include "util/user_text.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace containerize::spec {

namespace {

/// The name at the start of a requirement; empty if there is none.
std::string_view name_of_requirement(std::string_view text) {
    const auto* const end = std::ranges::find_if_not(
        text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
    const auto name = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    return is_package_name(name) ? name : std::string_view();
}

/// The extras in brackets after the name.
std::vector<std::string> extras_of_requirement(std::string_view text) {
    const auto open = text.find('[');
    const auto close = text.find(']');
    if (open == text.npos || close == text.npos || close < open) return {};
    return words_in(text.substr(open + 1, close - open - 1), ", \t");
}

/// Whether `rest` can follow a name: extras, conditions, a URL, a marker or nothing.
bool can_follow_name(std::string_view rest) {
    rest = trimmed(rest);
    return rest.empty() || std::string_view("[(<>=!~@;").find(rest.front()) != std::string_view::npos;
}

/// Extras or groups, as written, by their normalised names.
struct ProjectPart {
    std::string name;
    const toml::node* list;
};
using ProjectParts = std::map<std::string, ProjectPart, std::less<>>;

std::vector<std::string> names_of(const ProjectParts& parts) {
    std::vector<std::string> names;
    for (const auto& [normalised, part] : parts)
        names.push_back(part.name);
    return names;
}

/// Collects requirements as a file has them.
class ProjectReader {
public:
    ProjectReader(const TomlFile& toml, const LockChoice& choice) : toml_(toml), choice_(choice) {
        if (const auto* sources = toml.root()["tool"]["uv"]["sources"].as_table())
            for (const auto& [name, value] : *sources)
                of_uv_.insert(normalised_name(name.str()));
    }

    Result<ConvertedFile> read_project() {
        const auto* project = TRY(toml_.table(toml_.root(), "project"));
        groups_ = TRY(parts_in(toml_.root(), "dependency-groups"));
        if (project == nullptr && (groups_.empty() || choice_.groups.empty()))
            return fail_input(
                "this pyproject file lists no dependencies", "it has no table [project]",
                toml_.file().string(),
                "If it is a project of Poetry, give its poetry.lock. If it only has groups, choose "
                "one with --group.");
        TRY(check_parts(choice_.groups, names_of(groups_), "--group", toml_.file()));
        if (project != nullptr)
            TRY(take_project(*project));
        else
            TRY(check_parts(choice_.extras, {}, "--extra", toml_.file()));
        for (const auto& group : choice_.groups)
            TRY(take_group(normalised_name(group)));
        TRY(take_open_extras());
        return finish();
    }

    Result<ConvertedFile> read_script() {
        converted_.python = TRY(python_versions(toml_, toml_.root()));
        TRY(take_list(toml_.root().get("dependencies"), "dependencies"));
        return finish();
    }

private:
    /// Fails if two names are the same for Python's tools.
    [[nodiscard]] Result<ProjectParts> parts_in(const toml::table& parent, std::string_view key) const {
        ProjectParts parts;
        const auto* lists = TRY(toml_.table(parent, key));
        if (lists == nullptr) return parts;
        for (const auto& [written, list] : *lists) {
            auto name = std::string(written.str());
            const auto [first, is_new] =
                parts.emplace(normalised_name(name), ProjectPart{.name = name, .list = &list});
            if (!is_new)
                return toml_.refuse(list,
                                    "'" + printable_line(first->second.name) + "' and '" +
                                        printable_line(name) + "' are the same name",
                                    "upper case, `-`, `_` and `.` make no difference", "Rename one of them.");
        }
        return parts;
    }

    Status take_project(const toml::table& project) {
        name_ = normalised_name(TRY(toml_.text(project, "name")));
        TRY(check_dynamic(project));
        converted_.python = TRY(python_versions(toml_, project));
        extras_ = TRY(parts_in(project, "optional-dependencies"));
        TRY(check_parts(choice_.extras, names_of(extras_), "--extra", toml_.file()));
        TRY(take_list(project.get("dependencies"), "dependencies"));
        for (const auto& extra : choice_.extras)
            open_extra(normalised_name(extra));
        return {};
    }

    /// A project may say that only its build knows what it depends on.
    Status check_dynamic(const toml::table& project) const {
        for (const auto& one : TRY(toml_.texts(project, "dynamic")))
            if (one == "dependencies" || (one == "optional-dependencies" && !choice_.extras.empty()))
                return toml_.refuse(
                    *project.get("dynamic"), "the `" + one + "` of this project are dynamic",
                    "only a build of the project knows them",
                    "Give a lock of the project, or list its directory in a requirements file: "
                    "`./PROJECT`.");
        return {};
    }

    Status take_list(const toml::node* list, std::string_view key) {
        if (list == nullptr) return {};
        for (const auto* text : TRY(toml_.strings(*list, key)))
            TRY(take(text->get(), toml_.where(*text)));
        return {};
    }

    /// Takes an extra later: a chain of extras may be of any length.
    void open_extra(const std::string& extra) {
        if (known_extras_.insert(extra).second) open_extras_.push_back(extra);
    }

    Status take_open_extras() {
        while (!open_extras_.empty()) {
            const auto& part = extras_.at(open_extras_.front());
            open_extras_.pop_front();
            TRY(take_list(part.list, part.name));
        }
        return {};
    }

    /// A requirement on the project itself stands for what its extras add.
    Status take(const std::string& text, const std::string& where) {
        const auto requirement = std::string(trimmed(text));
        TRY(check_requirement_text(requirement, where));
        const auto name = name_of_requirement(requirement);
        if (name.empty() || !can_follow_name(std::string_view(requirement).substr(name.size())))
            return fail_input("invalid requirement: " + shown_requirement(requirement), {}, where,
                              "Write a package name and optional version conditions, such as "
                              "`numpy>=1.26,<3`, or `NAME @ URL`.");
        if (normalised_name(name) == name_) return take_own_extras(requirement, where);
        TRY(check_source(std::string(name), where));
        if (!known_.insert(requirement).second) return {};
        if (converted_.lines.size() == most_packages) return too_large(where, "50,000 requirements");
        converted_.lines.push_back({.text = requirement, .where = where});
        return {};
    }

    Status take_own_extras(const std::string& requirement, const std::string& where) {
        if (requirement.find(';') != requirement.npos)
            return fail_input("the project depends on itself under a condition", {}, where,
                              "Move the condition to the requirements of the extra.");
        for (const auto& extra : extras_of_requirement(requirement)) {
            if (!extras_.contains(normalised_name(extra)))
                return fail_input("this project has no extra '" + printable_line(extra) + "'", {}, where,
                                  "Correct the name.");
            open_extra(normalised_name(extra));
        }
        return {};
    }

    /// uv takes some packages from elsewhere. A package of that name on PyPI may be another one.
    Status check_source(const std::string& name, const std::string& where) const {
        if (!of_uv_.contains(normalised_name(name))) return {};
        return fail_input("'" + name + "' comes from where [tool.uv.sources] says, which only uv reads", {},
                          where, "Lock it with `uv lock`, and give the uv.lock.");
    }

    Status take_group(const std::string& wanted) {
        const auto& [name, list] = groups_.at(wanted);
        if (std::ranges::find(open_groups_, wanted) != open_groups_.end())
            return toml_.refuse(*list, "the group '" + printable_line(name) + "' includes itself", {},
                                "Remove one of the `include-group`.");
        if (!taken_groups_.insert(wanted).second) return {};
        const auto* items = list->as_array();
        if (items == nullptr)
            return toml_.refuse(*list, "the group '" + printable_line(name) + "' must be a list");
        open_groups_.push_back(wanted);
        for (const auto& item : *items)
            TRY(take_item(item));
        open_groups_.pop_back();
        return {};
    }

    Status take_item(const toml::node& item) {
        if (const auto* text = item.as_string()) return take(text->get(), toml_.where(item));
        const auto* include = item.as_table();
        if (include == nullptr || include->size() != 1 || !include->contains("include-group"))
            return toml_.refuse(item, "an item of a group must be a requirement or an `include-group`");
        const auto included = TRY(toml_.text(*include, "include-group"));
        const auto name = normalised_name(included);
        if (!groups_.contains(name))
            return toml_.refuse(item, "there is no group '" + printable_line(included) + "' to include", {},
                                "Correct the name.");
        if (open_groups_.size() == most_groups)
            return toml_.refuse(item, "groups include one another too deeply",
                                "at most " + std::to_string(most_groups) + " may");
        return take_group(name);
    }

    Result<ConvertedFile> finish() {
        if (converted_.lines.empty())
            return fail_input("this file requires no package", {}, toml_.file().string(),
                              "If its packages belong to a group or an extra, choose that with --group or "
                              "--extra.");
        if (toml_.root()["tool"]["uv"]["index"].as_array() != nullptr)
            converted_.notes.emplace_back(
                "The indexes in [tool.uv] are not used. pip's configuration names the "
                "indexes, or a uv.lock.");
        if (toml_.root()["tool"]["pixi"].is_table())
            converted_.notes.emplace_back(
                "[tool.pixi] is not used: only what [project] requires is installed. For what pixi would "
                "install, give its pixi.lock, or put those tables into a pixi.toml.");
        return std::move(converted_);
    }

    static constexpr std::size_t most_groups = 100; ///< each takes stack space

    const TomlFile& toml_;
    const LockChoice& choice_;
    ConvertedFile converted_;
    std::set<std::string> known_; ///< requirements that were taken
    std::set<std::string> of_uv_; ///< names of packages for which uv has another source
    std::string name_;            ///< of the project, normalised
    ProjectParts extras_, groups_;
    std::set<std::string> known_extras_, taken_groups_;
    std::deque<std::string> open_extras_;  ///< known, and not taken yet
    std::vector<std::string> open_groups_; ///< each includes the next
};

/// The TOML in the comment of a script, and how many lines come before it.
struct Block {
    std::string text;
    std::size_t lines_before = 0;
};

Result<Block> block_of_script(std::string_view text, const fs::path& file) {
    const auto lines = split_lines(text);
    constexpr std::string_view start = "# /// script";
    constexpr std::string_view end = "# ///";
    const auto is_comment = [](std::string_view line) { return line == "#" || line.starts_with("# "); };
    const auto where = [&](std::size_t at) { return file.string() + ":" + std::to_string(at + 1); };
    Block block;
    bool found = false;
    for (std::size_t at = 0; at < lines.size(); ++at) {
        if (trimmed(lines[at]) != start || lines[at].starts_with(' ')) continue;
        // The block ends at the last such line of the comment.
        std::size_t last = at;
        for (std::size_t next = at + 1; next < lines.size() && is_comment(lines[next]); ++next)
            if (lines[next] == end) last = next;
        if (last == at)
            return fail_input("the block of metadata in this script does not end", {}, where(at),
                              "End it with a line `# ///`.");
        if (found)
            return fail_input("this script has two blocks of metadata", {}, where(at), "Keep one of them.");
        found = true;
        block.lines_before = at + 1;
        for (std::size_t next = at + 1; next < last; ++next)
            block.text +=
                std::string(lines[next].substr(std::min<std::size_t>(2, lines[next].size()))) + "\n";
        at = last;
    }
    return block;
}

} // namespace

Result<ConvertedFile> read_pyproject(const fs::path& file, const LockChoice& choice) {
    const auto toml = TRY(TomlFile::read(file));
    return ProjectReader(toml, choice).read_project();
}

Result<ConvertedFile> read_script(const fs::path& file, const LockChoice& choice) {
    const auto content = TRY(read_input_file(file, largest_text));
    const auto text = TRY(decode(content, file));
    const auto block = TRY(block_of_script(text, file));
    const auto toml = TRY(TomlFile::parse(block.text, file, block.lines_before));
    return ProjectReader(toml, choice).read_script();
}

} // namespace containerize::spec

#include "environments/requirements_text.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/requirement_options.h"
#include "util/user_text.h"

#include <map>

namespace containerize::environments {

namespace {

/// Maps files to their copies.
using Places = std::map<fs::path, fs::path>;

/// Whether pip resolves the option's value relative to the file that contains it.
bool is_relative_to_file(const spec::Option& option, const fs::path& path) {
    if (option.kind == spec::OptionKind::include) return true;
    return option.name == "--find-links" && quiet::exists(path);
}

/// Rewrites a line of a file in `directory` for a file elsewhere.
std::string for_another_place(const std::string& line, const fs::path& directory, const Places& places) {
    if (!line.starts_with('-')) return line;
    const auto words = split_words(line);
    const auto* option = words && !words->empty() ? spec::find_option(words->front()) : nullptr;
    if (option == nullptr) return line;
    std::string value(spec::attached_value(words->front()));
    if (value.empty() && words->size() > 1) value = (*words)[1];
    // A variable may expand to an absolute path.
    if (value.empty() || is_url(value) || value.starts_with("file:") || value.starts_with("${")) return line;
    const auto path = (directory / value).lexically_normal();
    if (!is_relative_to_file(*option, path)) return line;
    const auto place = places.find(path);
    return std::string(option->name) + " " +
           shell_quoted((place == places.end() ? path : place->second).string());
}

using Change = std::function<std::string(std::string_view)>;

Status copy_file(const fs::path& file, const Places& places, const Change& changed) {
    auto content = TRY(read_file(file));
    const auto decoded = TRY(decode(content, file));
    std::string text;
    for (const auto line : split_lines(decoded))
        text += for_another_place(changed(line), file.parent_path(), places) + "\n";
    return write_file(places.at(file), text);
}

} // namespace

std::string requirements_text(const std::vector<Located>& lines, const fs::path& directory) {
    std::string text;
    for (const auto& line : lines)
        text += for_another_place(line.text, directory, {}) + "\n";
    return text;
}

Result<fs::path> copy_requirements(const spec::Requirements& read, const fs::path& directory,
                                   const Change& changed) {
    TRY(make_directories(directory));
    Places places;
    for (const auto& file : read.files)
        places.emplace(file, directory / (std::to_string(places.size()) + "-" + file.filename().string()));
    for (const auto& file : read.files)
        TRY(copy_file(file, places, changed));
    return places.at(read.files.front());
}

} // namespace containerize::environments

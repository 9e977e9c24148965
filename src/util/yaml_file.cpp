#include "util/yaml_file.h"

#include "core/filesystem.h"
#include "util/text_limits.h"
#include "util/user_text.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>

namespace containerize {

namespace {

/// Finds scalars with NUL characters, which cannot be passed to programs.
class NulFinder : public YAML::EventHandler {
public:
    /// The first line of such a scalar, counted from 1; 0 if there is none.
    [[nodiscard]] int line() const { return line_; }

private:
    void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
    void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
    void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  const std::string& value) override {
        if (line_ == 0 && value.find('\0') != std::string::npos) line_ = mark.line + 1;
    }
    void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                         YAML::EmitterStyle::value /*style*/) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                    YAML::EmitterStyle::value /*style*/) override {}
    void OnMapEnd() override {}

    int line_ = 0;
};

/// Whether there is a second document. YAML::LoadAll() would loop forever on a comma or bracket after the
/// first.
bool goes_on_after_its_document(const std::string& text, YAML::EventHandler& handler) {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    return parser.HandleNextDocument(handler) && parser.HandleNextDocument(handler);
}

} // namespace

Result<YamlFile> YamlFile::read(const std::filesystem::path& file, std::size_t most_nodes,
                                bool may_have_secrets) {
    auto content = TRY(read_input_file(file, largest_text));
    auto text = TRY(decode(content, file));
    if (most_yaml_nodes(text) > most_nodes)
        return fail_input("this file has too many entries", "the limit is " + std::to_string(most_nodes),
                          file.string());
    YamlFile yaml;
    yaml.file_ = file;
    yaml.shows_lines_ = !may_have_secrets;
    yaml.text_ = std::move(text);
    // Count lines like yaml-cpp.
    for (std::size_t start = 0; start < yaml.text_.size();) {
        yaml.line_starts_.push_back(static_cast<std::uint32_t>(start));
        start = std::min(yaml.text_.find('\n', start), yaml.text_.size()) + 1;
    }
    // yaml-cpp throws on syntax errors; turn that into errors.
    try {
        NulFinder nul;
        if (goes_on_after_its_document(yaml.text_, nul))
            return fail_input(
                "this file contains several YAML documents", {}, file.string(),
                "Keep one document, without '---' lines. Remove what follows it, such as an extra bracket.");
        if (const int line = nul.line(); line != 0)
            return fail_input("a string in this file contains a NUL character", yaml.excerpt(line),
                              file.string() + ":" + std::to_string(line), "Remove `\\0` from it.");
        yaml.root_ = YAML::Load(yaml.text_);
        return yaml;
    } catch (const YAML::Exception& problem) {
        const int line = problem.mark.line + 1;
        std::string hint;
        const auto shown = yaml.excerpt(line);
        if (shown.find('\t') != std::string::npos) hint = "YAML is indented with spaces, not tabs.";
        return fail_input("invalid YAML", problem.msg + (shown.empty() ? "" : "\n" + shown),
                          problem.mark.is_null() ? file.string() : file.string() + ":" + std::to_string(line),
                          hint);
    }
}

std::string_view YamlFile::line(int number) const {
    if (number < 1 || static_cast<std::size_t>(number) > line_starts_.size()) return {};
    const auto start = std::string_view(text_).substr(line_starts_[static_cast<std::size_t>(number) - 1]);
    return start.substr(0, start.find_first_of("\r\n"));
}

std::string_view YamlFile::line(const YAML::Node& node) const {
    return line(node.Mark().line + 1); // -1 + 1 if there is no mark
}

std::string YamlFile::excerpt(int number) const {
    const auto shown = shows_lines_ ? line(number).substr(0, 160) : std::string_view();
    return shown.data() == nullptr ? "" : "  " + std::to_string(number) + " | " + std::string(shown);
}

std::string YamlFile::where(const YAML::Node& node) const {
    const auto mark = node.Mark();
    return mark.is_null() ? file_.string() : file_.string() + ":" + std::to_string(mark.line + 1);
}

std::unexpected<Error> YamlFile::refuse(const YAML::Node& node, std::string what, std::string hint) const {
    const auto mark = node.Mark();
    const auto shown = mark.is_null() ? std::string() : excerpt(mark.line + 1);
    return fail_input(std::move(what), shown.empty() ? "" : "\n" + shown, where(node), std::move(hint));
}

Status YamlFile::each(const YAML::Node& mapping,
                      const std::function<Status(const YAML::Node&, const YAML::Node&)>& visit) const {
    std::set<std::string> seen;
    for (const auto& entry : mapping) {
        if (!entry.first.IsScalar()) return refuse(entry.first, "a key must be a single value");
        const auto& key = entry.first.Scalar();
        if (!seen.insert(key).second)
            return refuse(entry.first, "'" + key + "' is defined twice", "Combine both into one.");
        TRY(visit(entry.first, entry.second));
    }
    return {};
}

} // namespace containerize
